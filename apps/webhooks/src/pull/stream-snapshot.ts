import type { ServerResponse } from "node:http";
import { pullSnapshot } from "@booking-events/feed";
import { inTransaction, notePlace, type PullSubscription, readOneSnapshot } from "@booking-events/store";
import { toEvent } from "@booking-events/subscribers";
import type { Pool } from "pg";
import { filterOf } from "../subscriptions/filter-of.ts";
import { PullRefused, tooManySnapshots } from "./pull-answers.ts";

/** Each holds a connection, and keeps PostgreSQL from removing what has been deleted since it began. */
const maxSnapshots = 2;
/** How long a subscriber may take no bytes. */
const drainTimeoutMs = 30_000;

/** Gives subscribers all bookings at one position of the feed. */
export class Snapshots {
  readonly #database: Pool;
  readonly #schema: string;
  readonly #underWay = new Set<string>();

  constructor({ database, schema }: { database: Pool; schema: string }) {
    this.#database = database;
    this.#schema = schema;
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
    try {
      await this.#stream(subscription, response);
    } finally {
      this.#underWay.delete(name);
    }
  }

  async #stream(subscription: PullSubscription, response: ServerResponse): Promise<void> {
    const { name, payload } = subscription;
    await inTransaction(this.#database, async (client) => {
      await client.query(readOneSnapshot);
      await client.query(`set local idle_in_transaction_session_timeout to ${2 * drainTimeoutMs}`);
      const options = { name, schema: this.#schema, filter: filterOf(subscription), memory: this.#database };
      const { position, pages } = await pullSnapshot(client, options);
      // What is given of a filter is remembered with the reader, so there must be one.
      await notePlace(this.#database, name, position);
      response.writeHead(200, { "Content-Type": "application/x-ndjson", "Cache-Control": "no-store" });
      await send(response, `${JSON.stringify({ position })}\n`);
      for await (const bookings of pages) {
        const lines = bookings.map((booking) => {
          const { id: _, ...event } = toEvent(booking, { payload, changedFields: null });
          return `${JSON.stringify(event)}\n`;
        });
        await send(response, lines.join(""));
      }
    });
    response.end();
  }
}

/** @throws SlowSubscriber */
async function send(response: ServerResponse, text: string): Promise<void> {
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
