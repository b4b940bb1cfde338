import { type DeadLetter, isInQueue } from "@booking-events/operations";
import type { Output } from "../../context.ts";
import { parseEventId } from "../../terminal/arguments.ts";
import { printFields, withReferenceKind } from "../../terminal/print.ts";

export function describeState(letter: DeadLetter): string {
  if (letter.resolution !== null) return letter.resolution;
  return isInQueue(letter) ? "replayed, waiting" : "open";
}

export function printLetter(output: Output, letter: DeadLetter): void {
  printFields(output, [
    ["Partner", letter.partner],
    ["Kind", letter.kind],
    ["Reference", letter.reference && withReferenceKind(letter.reference, letter.referenceKind)],
    ["Sequence", letter.sequence === null ? null : String(letter.sequence)],
    ["Error", `${letter.errorCode}: ${letter.error}`],
    ["Attempts", String(letter.attempts)],
    ["State", describeState(letter)],
    ["Failed", letter.failedAt.toISOString()],
    ["Replayed", describeDeed(letter.replayedAt, letter.replayedBy)],
    ["Resolved", describeDeed(letter.resolvedAt, letter.resolvedBy)],
  ]);
}

function describeDeed(at: Date | null, by: string | null): string | null {
  return at === null ? null : `${at.toISOString()} by ${by}`;
}

/** For example: 3 dead letters (2 × STALLED, 1 × 22P02) */
export function describeLetters(letters: DeadLetter[]): string {
  const counts = [...Map.groupBy(letters, ({ errorCode }) => errorCode)].map(
    ([code, { length }]) => `${length} × ${code}`,
  );
  return `${letters.length} dead letter${letters.length === 1 ? "" : "s"} (${counts.join(", ")})`;
}

export function collectEventIds(text: string, previous: string[] = []): string[] {
  return [...previous, parseEventId(text)];
}
