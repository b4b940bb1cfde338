import { groupQueuedEvents } from "@booking-events/queue";
import { groupDeadLetters } from "@booking-events/store";
import type { Context } from "../context.ts";
import { withDatabase } from "../services/database.ts";
import { withRedis } from "../services/queue.ts";
import { requireSameDatabase } from "../services/require-same-database.ts";
import type { StuckCause } from "./find-stuck.ts";

/** Events that are stuck for the same reason. */
export interface StuckGroup {
  status: StuckCause["status"];
  /** Null: none is known. */
  code: string | null;
  count: number;
  /** When the first of them is tried again. Null: as soon as a worker is free, or, if they are dead, never by itself. */
  nextAttemptAt: Date | null;
  /** When the first of the dead ones failed. */
  oldestFailedAt: Date | null;
  /** How many of the dead ones were replayed, and have no result yet. */
  replayed: number;
}

export interface StuckGroups {
  /** Dead ones first, and then those that come next to being dead. */
  groups: StuckGroup[];
  /** How many events are in the queue, and how many of them were looked at. */
  total: number;
  looked: number;
}

const order: StuckGroup["status"][] = ["dead", "given-up", "delayed", "held", "waiting"];

/** Groups the events that were accepted and are not applied by the reason why. */
export async function groupStuck(context: Context, { partner }: { partner: string | undefined }): Promise<StuckGroups> {
  return withDatabase(context, async (pool) => {
    await requireSameDatabase(context, pool);
    const queue = await withRedis(context, (settings) =>
      groupQueuedEvents({ ...settings, partner, isTest: context.isTest }),
    );
    const dead = await groupDeadLetters(pool, { partner });
    const groups: StuckGroup[] = [
      ...dead.map(({ errorCode, count, oldestFailedAt, inQueue }) => ({
        status: "dead" as const,
        code: errorCode,
        count,
        nextAttemptAt: null,
        oldestFailedAt,
        replayed: inQueue,
      })),
      ...queue.groups.map(({ state, ...group }) => ({ ...group, status: state, oldestFailedAt: null, replayed: 0 })),
    ];
    groups.sort((one, other) => order.indexOf(one.status) - order.indexOf(other.status) || other.count - one.count);
    return { groups, total: queue.total, looked: queue.looked };
  });
}
