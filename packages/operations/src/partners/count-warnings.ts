import { readWarningCounts, type WarningCount } from "@booking-events/queue";
import type { Context } from "../context.ts";
import { readFile, requirePartner } from "../services/partners-file.ts";
import { withRedis } from "../services/queue.ts";

export type WarningTotal = Omit<WarningCount, "day">;

/**
 * Counts the warnings that partners' accepted events got, the most frequent first.
 *
 * @param partner undefined: all
 */
export async function countWarnings(context: Context, partner: string | undefined): Promise<WarningTotal[]> {
  const partners =
    partner === undefined ? readFile(context, (file) => file.partners) : [requirePartner(context, partner)];
  const counts = await withRedis(context, (redis) =>
    readWarningCounts({ ...redis, partners: partners.map(({ id }) => id), now: context.now() }),
  );
  return addUp(counts);
}

/** @param counts newest day first */
function addUp(counts: WarningCount[]): WarningTotal[] {
  const totals = new Map<string, WarningTotal>();
  for (const { day: _, ...count } of counts) {
    const name = `${count.partner} ${count.field} ${count.code}`;
    const newer = totals.get(name);
    totals.set(name, newer === undefined ? count : addOlder(newer, count));
  }
  return [...totals.values()].sort((one, other) => other.count - one.count);
}

function addOlder(newer: WarningTotal, older: WarningTotal): WarningTotal {
  return {
    ...newer,
    count: newer.count + older.count,
    firstAt: older.firstAt,
    lastEventId: newer.lastEventId ?? older.lastEventId,
  };
}
