import { setTimeout as sleep } from "node:timers/promises";
import {
  type EventDetails,
  type EventFilter,
  type FollowPosition,
  findFollowPosition,
  findNewEvents,
  followWindowMs,
  listEvents,
} from "@booking-events/store";
import type { Context, Pool } from "../context.ts";
import { OperationFailure } from "../operation-failure.ts";
import { describeDatabaseError, readDatabaseSettings, readSnapshot, withDatabase } from "../services/database.ts";

const intervalMs = 1_000;
/** The query takes at most this share of the time, so following costs a busy database little. */
const queryShare = 0.1;
/** More events in one query would need too much memory. */
const maxNewEvents = 100_000;

/** Yields the newest events, and then new ones as they are applied, oldest first. Never ends. */
export async function* followEvents(context: Context, filter: EventFilter): AsyncGenerator<EventDetails[], never> {
  const shown = createShownEvents();
  let [position, events] = await withDatabase(context, (pool) => readNewest(pool, filter));
  yield events.toReversed().filter((event) => shown.add(event));
  let queryMs = 0;
  for (;;) {
    await sleep(Math.max(intervalMs, queryMs * (1 / queryShare - 1)));
    [position, events] = await throughOutages(context, async (pool) => {
      const startedAtMs = performance.now();
      const found = await readNew(pool, position, filter);
      queryMs = performance.now() - startedAtMs;
      return found;
    });
    yield events.filter((event) => shown.add(event));
  }
}

function readNewest(pool: Pool, filter: EventFilter): Promise<[FollowPosition, EventDetails[]]> {
  return readSnapshot(pool, async (client) => [await findFollowPosition(client), await listEvents(client, filter)]);
}

async function readNew(
  pool: Pool,
  last: FollowPosition,
  filter: EventFilter,
): Promise<[FollowPosition, EventDetails[]]> {
  const found: [FollowPosition, EventDetails[]] = await readSnapshot(pool, async (client) => [
    await findFollowPosition(client),
    await findNewEvents(client, last, { ...filter, limit: maxNewEvents + 1 }),
  ]);
  if (found[1].length > maxNewEvents)
    throw new OperationFailure(`More than ${maxNewEvents} events were applied since the last look. Select fewer.`);
  return found;
}

/** Remembers the events that a query may find again. */
function createShownEvents() {
  const processedAtOf = new Map<string, number>();
  return {
    /** @returns false if the event was shown before */
    add({ id, processedAt }: EventDetails): boolean {
      if (processedAtOf.has(id)) return false;
      processedAtOf.set(id, processedAt.getTime());
      // The oldest are first, apart from a few.
      for (const [oldId, time] of processedAtOf) {
        if (time >= processedAt.getTime() - 2 * followWindowMs) break;
        processedAtOf.delete(oldId);
      }
      return true;
    },
  };
}

/** Tries again until PostgreSQL can be reached, and says so once. */
async function throughOutages<Result>(context: Context, work: (pool: Pool) => Promise<Result>): Promise<Result> {
  for (let isOut = false; ; ) {
    try {
      const result = await work(context.pool(context.isTest));
      if (isOut) context.notify("PostgreSQL can be reached again.");
      return result;
    } catch (error) {
      const described = describeDatabaseError(error, readDatabaseSettings(context.environment));
      if (!(described instanceof OperationFailure) || error instanceof OperationFailure) throw error;
      if (!isOut) context.notify(`${described.message} Trying again until Ctrl-C.`);
      isOut = true;
      await sleep(intervalMs);
    }
  }
}
