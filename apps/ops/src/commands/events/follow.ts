import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type createPool,
  type EventDetails,
  type EventFilter,
  type FollowPosition,
  findFollowPosition,
  findNewEvents,
  followWindowMs,
  listEvents,
} from "@booking-events/store";
import type { Context } from "../../context.ts";
import {
  type DatabaseSettings,
  describeDatabaseError,
  readDatabaseSettings,
  readSnapshot,
  withDatabase,
} from "../../database.ts";
import { CommandFailure } from "../../terminal/command-failure.ts";
import { formatTable } from "../../terminal/format-table.ts";
import { printHeading, printLine, widthOf } from "../../terminal/print.ts";
import { toJsonLine } from "../../terminal/printable.ts";
import { columns } from "./columns.ts";

const intervalMs = 1_000;
/** The query takes at most this share of the time, so following costs a busy database little. */
const queryShare = 0.1;
/** More events in one query would need too much memory. */
const maxNewEvents = 100_000;

type Pool = ReturnType<typeof createPool>;

/** Prints the newest events, and then new ones as they are applied. Never returns. */
export async function followEvents(context: Context, filter: EventFilter, options: { json: boolean }): Promise<never> {
  context.endWithReader();
  const database = readDatabaseSettings(context.environment);
  const shown = createShownEvents();
  return withDatabase(context, async (pool) => {
    let position = await showNewest();
    let queryMs = 0;
    for (;;) {
      await sleep(Math.max(intervalMs, queryMs * (1 / queryShare - 1)));
      position = await throughOutages(context, database, () => showNew(position));
    }

    async function showNewest(): Promise<FollowPosition> {
      const [found, events] = await readSnapshot(pool, async (client) => [
        await findFollowPosition(client),
        await listEvents(client, filter),
      ]);
      if (!options.json) printHeading(context.stdout, formatTable(columns, [], widthOf(context.stdout))[0] ?? "");
      await show(events.toReversed());
      return found;
    }

    async function showNew(last: FollowPosition): Promise<FollowPosition> {
      const startedAtMs = performance.now();
      const [found, events] = await readNew(pool, last, filter);
      queryMs = performance.now() - startedAtMs;
      await show(events);
      return found;
    }

    async function show(events: EventDetails[]): Promise<void> {
      const fresh = events.filter((event) => shown.add(event));
      await print(context, fresh, options);
    }
  });
}

async function readNew(pool: Pool, last: FollowPosition, filter: EventFilter) {
  const [found, events] = await readSnapshot(pool, async (client) => [
    await findFollowPosition(client),
    await findNewEvents(client, last, { ...filter, limit: maxNewEvents + 1 }),
  ]);
  if (events.length > maxNewEvents)
    throw new CommandFailure(`More than ${maxNewEvents} events were applied since the last look. Select fewer.`);
  return [found, events] as const;
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

/** Waits for the reader of a pipe. */
async function print({ stdout }: Context, events: EventDetails[], { json }: { json: boolean }): Promise<void> {
  const lines = json ? events.map(toJsonLine) : formatTable(columns, events, widthOf(stdout)).slice(1);
  for (const line of lines) if (!stdout.write(`${line}\n`)) await once(stdout, "drain");
}

/** Tries again until PostgreSQL can be reached, and says so once. */
async function throughOutages<Result>(
  { stderr }: Context,
  database: DatabaseSettings,
  work: () => Promise<Result>,
): Promise<Result> {
  for (let isOut = false; ; ) {
    try {
      const result = await work();
      if (isOut) printLine(stderr, "PostgreSQL can be reached again.");
      return result;
    } catch (error) {
      const described = describeDatabaseError(error, database);
      if (!(described instanceof CommandFailure) || error instanceof CommandFailure) throw error;
      if (!isOut) printLine(stderr, `${described.message} Trying again until Ctrl-C.`);
      isOut = true;
      await sleep(intervalMs);
    }
  }
}
