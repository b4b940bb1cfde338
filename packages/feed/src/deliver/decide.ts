import type { BookingChange } from "../read-changes.ts";
import type { DeliveryFilter } from "./consumer-options.ts";
import { type Handed, judge, needsMemory } from "./filter.ts";
import type { Found } from "./read-deliveries.ts";

/** What is to become of a booking whose turn has come. */
export type Decision =
  /** Another process has the lease. */
  | { kind: "lost" }
  /** There is nothing left to do, or the filter leaves it out. */
  | { kind: "nothing" }
  /** It waited, and the filter leaves it out. */
  | { kind: "skip"; changeId: number }
  /** An earlier delivery of the booking waits, and this one behind it. */
  | { kind: "waits" }
  | {
      kind: "hand";
      change: BookingChange;
      attempt: number;
      /** The first change that this one stands for, if there are others. */
      sinceId: number | null;
      /** What the consumer knows of the booking then; null: as before, or nothing has to be remembered. */
      handed: Handed | null;
    };

/**
 * @param task.isRetry it waited for its turn in feed_deliveries
 */
export function decide(
  {
    changeId,
    isRetry,
    filter,
    isLatest,
  }: { changeId: number | null; isRetry: boolean; filter: DeliveryFilter; isLatest: boolean },
  { isHeld, doneId, waiting, handed, change }: Found,
): Decision {
  if (!isHeld) return { kind: "lost" };
  // What was due may have been done, or replaced, since it was looked for.
  if (isRetry && (waiting === null || waiting.isDead || waiting.changeId !== changeId)) return { kind: "nothing" };
  if (!isRetry && doneId !== null && doneId >= (changeId ?? 0)) return { kind: "nothing" };
  if (change === null) return { kind: "nothing" };
  if (!isRetry && waiting !== null) {
    const isBehind = change.id <= waiting.changeId || (!isLatest && change.change !== "erased");
    if (isBehind) return { kind: "waits" };
  }
  const judged = needsMemory(filter) ? judge(filter, change, handed) : { isWanted: true, handed };
  // What has failed was wanted, so what takes its place is.
  const isOwed = waiting?.hasFailed === true;
  if (!judged.isWanted && !isOwed) return isRetry ? { kind: "skip", changeId: change.id } : { kind: "nothing" };
  const isSame = waiting?.changeId === change.id;
  return {
    kind: "hand",
    change,
    attempt: isSame ? waiting.attempts + 1 : 1,
    sinceId: isSame ? waiting.sinceId : (waiting?.sinceId ?? waiting?.changeId ?? null),
    handed: judged.handed === handed ? null : judged.handed,
  };
}
