import type { ServerResponse } from "node:http";
import { pullSnapshot } from "@booking-events/feed";
import { inTransaction, notePlace, type PullSubscription, readOneSnapshot } from "@booking-events/store";
import { toEvent } from "@booking-events/subscribers";
import type { Pool } from "pg";
import { filterOf } from "../subscriptions/filter-of.ts";
import { PullRefused, tooManySnapshots, unavailable } from "./pull-answers.ts";

/** Each holds a connection, and keeps PostgreSQL from removing what has been deleted since it began. */
const maxSnapshots = 2;
export const snapshotLimits = {
  /** How long a subscriber may take nothing of a booking. */
  drainTimeoutMs: 30_000,
  /** For the whole. However slowly a subscriber reads, the next ones get their turn. */
  longestMs: 3_600_000,
};

interface SnapshotsOptions {
  database: Pool;
  schema: string;
  isStopping: () => boolean;
  limits?: typeof snapshotLimits;
}

/** Gives subscribers all bookings at one position of the feed. */
export class Snapshots {
  readonly #options: Required<SnapshotsOptions>;
  readonly #underWay = new Set<string>();

  constructor(options: SnapshotsOptions) {
    this.#options = { limits: snapshotLimits, ...options };
  }

  /**
   * Sends a line with the position, and a line for each booking that is not deleted: as a change that creates it, without
   * an id.
   *
   * @throws PullRefused; what PostgreSQL or the connection throws
   */
  async stream(subscription: PullSubscription, response: ServerResponse): Promise<void> {
    const { name } = subscription;
    if (this.#underWay.size >= maxSnapshots || this.#underWay.has(name)) throw new PullRefused(tooManySnapshots);
    this.#underWay.add(name);
    const timer = setTimeout(() => response.destroy(), this.#options.limits.longestMs);
    try {
      await this.#stream(subscription, response);
    } finally {
      clearTimeout(timer);
      this.#underWay.delete(name);
    }
  }

  async #stream(subscription: PullSubscription, response: ServerResponse): Promise<void> {
    const { name, payload } = subscription;
    const { database, schema, isStopping, limits } = this.#options;
    await inTransaction(database, async (client) => {
      await client.query(readOneSnapshot);
      // If this process can't end it.
      const idleMs = limits.longestMs + limits.drainTimeoutMs;
      await client.query(`set local idle_in_transaction_session_timeout to ${idleMs}`);
      const options = { name, schema, filter: filterOf(subscription), memory: database };
      const { position, pages } = await pullSnapshot(client, options);
      // What is given of a filter is remembered with the reader, so there must be one.
      await notePlace(database, name, position);
      // A filter may leave out all bookings for longer than a connection may be silent.
      response.setTimeout(limits.longestMs);
      response.shouldKeepAlive = false;
      response.writeHead(200, { "Content-Type": "application/x-ndjson", "Cache-Control": "no-store" });
      await send(response, `${JSON.stringify({ position })}\n`, limits);
      for await (const bookings of pages) {
        if (isStopping()) throw new PullRefused(unavailable);
        for (const booking of bookings) {
          const { id: _, ...event } = toEvent(booking, { payload, changedFields: null });
          await send(response, `${JSON.stringify(event)}\n`, limits);
        }
      }
    });
    response.end();
  }
}

/** @throws SlowSubscriber */
async function send(response: ServerResponse, text: string, { drainTimeoutMs }: typeof snapshotLimits): Promise<void> {
  if (response.destroyed) throw new SlowSubscriber("The subscriber has hung up.");
  if (response.write(text)) return;
  await new Promise<void>((resolve, reject) => {
    const end = (settle: () => void) => () => {
      clearTimeout(timer);
      response.off("drain", onDrain).off("close", onClose);
      settle();
    };
    const onDrain = end(resolve);
    const onClose = end(() => reject(new SlowSubscriber("The subscriber has hung up.")));
    const timer = setTimeout(
      end(() => reject(new SlowSubscriber("The subscriber takes no bytes."))),
      drainTimeoutMs,
    );
    response.on("drain", onDrain).on("close", onClose);
  });
}

/** It is the subscriber's fault, so nobody has to look. */
export class SlowSubscriber extends Error {
  override name = "SlowSubscriber";
}
