import { describeCount, toSeconds } from "../describe.ts";
import { type Reason, restoreReasons } from "./plan-restore.ts";
import type { Restored } from "./restore-bookings.ts";
import type { RestoreSummary } from "./summarise-restore.ts";

const maxFields = 20;

/**
 * Describes what a restore does, or would do, in labelled lines. Null: there is nothing to say.
 *
 * @param restored null: it has not ended
 */
export function describeRestore(
  summary: RestoreSummary,
  at: Date,
  restored: Restored | null,
): [label: string, value: string | null][] {
  const { counts, fields, changedByOthers, withDeadLetters } = summary;
  const logBegins = restored?.logBegins ?? null;
  const { queued, ...results } = restored?.results ?? {};
  return [
    ["Put back", describeCount(counts.update, "booking")],
    ["Deleted", describeCount(counts.delete, "booking")],
    ["Left as they are", describeLeft(counts)],
    ["Fields", describeFields(fields)],
    [
      "Changes of others",
      changedByOthers === 0
        ? null
        : `${describeCount(changedByOthers, "booking")} had events of other secrets since, which are undone, too`,
    ],
    [
      "Dead letters",
      withDeadLetters === 0 ? null : `${describeCount(withDeadLetters, "booking")} with open ones, which stay`,
    ],
    ["Log", logBegins !== null && logBegins > at ? `it begins at ${toSeconds(logBegins)}, after that time` : null],
    ["Queued", queued === undefined ? null : describeCount(queued, "event")],
    ["Results", listCounts(results, (what, count) => `${count} ${what}`)],
  ];
}

function describeLeft({ update: _update, delete: _delete, ...left }: RestoreSummary["counts"]): string | null {
  return listCounts(left, (reason, count) => `${count}: ${restoreReasons[reason as Reason]}`, "; ");
}

function describeFields(fields: ReadonlyMap<string, number>): string | null {
  const most = [...fields].sort(([, one], [, other]) => other - one);
  const names = listCounts(Object.fromEntries(most.slice(0, maxFields)), (name, count) => `${name} (${count})`);
  return most.length > maxFields ? `${names}, and ${most.length - maxFields} more` : names;
}

/** @returns null: all are 0 */
function listCounts(
  counts: Record<string, number>,
  describe: (name: string, count: string) => string,
  separator = ", ",
): string | null {
  const some = Object.entries(counts).filter(([, count]) => count > 0);
  return some.map(([name, count]) => describe(name, count.toLocaleString("en"))).join(separator) || null;
}
