import { type FoldEvent, foldEvents } from "@booking-events/bookings";
import { randomRuns } from "@booking-events/harness/random-runs";
import type { EventKind } from "@booking-events/schema";
import fc from "fast-check";
import { expect, test } from "vitest";
import { type ExpectedBooking, type ExpectedOutcome, expectBookings, type OracleEvent } from "./oracle.ts";

/** The fold and the oracle were written independently, so a mistake in one shows as a difference. */

const duplicateWindowMs = 60_000;
const windowMicroseconds = duplicateWindowMs * 1_000;
const start = Date.UTC(2026, 10, 20) * 1_000;

interface Note {
  kind: EventKind;
  content: string;
  /** Microseconds after the event before. */
  later: number;
}

/**
 * With few contents, many events repeat what was sent before. The gaps, or the sum of two, end at the last microsecond
 * of the window, or one after it.
 */
const note: fc.Arbitrary<Note> = fc.record({
  kind: fc.constantFrom<EventKind>("create", "create", "update", "update", "delete"),
  content: fc.constantFrom("A", "B"),
  later: fc.constantFrom(
    ...[1, 1_000_000, windowMicroseconds / 2, windowMicroseconds / 2 + 1],
    ...[windowMicroseconds - 1, windowMicroseconds, windowMicroseconds + 1],
  ),
});

test("what each event does, and the booking after it, is what the oracle says", { timeout: 60_000 }, () => {
  fc.assert(
    fc.property(fc.array(note, { minLength: 1, maxLength: 9 }), (notes) => {
      expect(foldAll(toEvents(notes))).toEqual(askOracle(toEvents(notes)));
    }),
    { ...randomRuns(5_000), seed: 20_261_122 },
  );
});

interface Result {
  outcomes: (ExpectedOutcome | undefined)[];
  warnings: (string | undefined)[];
  booking: ExpectedBooking | undefined;
}

function toEvents(notes: Note[]): OracleEvent[] {
  let sequence = start;
  return notes.map(({ kind, content, later }, index) => {
    sequence += later;
    const reference = { partner: "acme", reference: "T1", idempotencyKey: null };
    return { ...reference, id: `e${index + 1}`, kind, sequence, content: kind === "delete" ? "reference" : content };
  });
}

function foldAll(events: OracleEvent[]): Result {
  const folded = events.map(
    ({ id, kind, sequence, content }): FoldEvent => ({
      id,
      kind,
      sequence,
      hasIdempotencyKey: false,
      contentDigest: content,
      receivedAt: new Date(sequence / 1_000),
    }),
  );
  const steps = foldEvents(null, folded, { earlierCreates: new Map(), duplicateWindowMs });
  const last = steps.at(-1)?.after;
  return {
    outcomes: steps.map(({ outcome }) => outcome),
    warnings: steps.map(({ warning }) => warning ?? undefined),
    booking: last && { state: last.state, sequence: last.sequence, content: last.content?.digest ?? null },
  };
}

function askOracle(events: OracleEvent[]): Result {
  const { outcomes, warnings, bookings } = expectBookings(events, duplicateWindowMs);
  return {
    outcomes: events.map(({ id }) => outcomes.get(id)),
    warnings: events.map(({ id }) => warnings.get(id)),
    booking: bookings.get("acme T1"),
  };
}
