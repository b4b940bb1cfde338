import { type DeadLetter, describeCount, isInQueue } from "@booking-events/operations";
import { parseJson } from "@booking-events/schema";
import type { Output } from "../../context.ts";
import { parseEventId } from "../../terminal/arguments.ts";
import { printFields } from "../../terminal/print.ts";
import { describeReference } from "../../terminal/reference.ts";

export function describeState(letter: DeadLetter): string {
  if (letter.resolution !== null) return letter.resolution;
  return isInQueue(letter) ? "replayed, waiting" : "open";
}

export function printLetter(output: Output, letter: DeadLetter): void {
  printFields(output, [
    ["Partner", letter.partner],
    ["Kind", letter.kind],
    ["Reference", letter.reference && describeReference(letter)],
    ["Sequence", letter.sequence],
    ["Error", `${letter.errorCode}: ${letter.error}`],
    ["Attempts", letter.attempts],
    ["State", describeState(letter)],
    ["Failed", letter.failedAt],
    ["Replayed", letter.replayedAt],
    ["Replayed by", letter.replayedBy],
    ["Resolved", letter.resolvedAt],
    ["Resolved by", letter.resolvedBy],
  ]);
}

/** The queue may hold anything. What is not JSON is shown as text. It holds personal data. */
export function readQueued({ envelope }: { envelope: Buffer }): unknown {
  const text = envelope.toString();
  try {
    return parseJson(text);
  } catch {
    return text;
  }
}

/** For example: 3 dead letters (2 × STALLED, 1 × 22P02) */
export function describeLetters(letters: DeadLetter[]): string {
  const counts = [...Map.groupBy(letters, ({ errorCode }) => errorCode)].map(
    ([code, { length }]) => `${length} × ${code}`,
  );
  return `${describeCount(letters.length, "dead letter")} (${counts.join(", ")})`;
}

export function collectEventIds(text: string, previous: string[] = []): string[] {
  return [...previous, parseEventId(text)];
}
