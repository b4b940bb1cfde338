import type { LookedUpEvent } from "@booking-events/operations";

/** What lookup answers its partner who asks for the event's receipt, in a sentence. */
export function describeReceipt({ queued, recorded, partner }: LookedUpEvent): string {
  if (partner === null) return "There is no such event: nobody can read whose it is.";
  if (recorded !== null && recorded.outcome !== null) return describeRecorded(recorded, recorded.outcome);
  if (queued !== null) return "waiting: it was accepted, and is not applied yet.";
  const letter = recorded?.deadLetter ?? null;
  if (letter === null) return "There is no such event.";
  if (letter.isErased) return "erased";
  return letter.isReplayed
    ? "waiting: it was accepted, and is not applied yet."
    : `failed, with the code ${letter.errorCode}`;
}

type Recorded = NonNullable<LookedUpEvent["recorded"]>;

function describeRecorded(recorded: Recorded, outcome: NonNullable<Recorded["outcome"]>): string {
  const { isErased, decidedBy, duplicateOf } = recorded;
  if (isErased || outcome === "erased") return "erased";
  if (outcome === "expired") return "expired: it was older than the log.";
  const decided = decidedBy === null ? "" : ` The event that decides the booking now is ${decidedBy}.`;
  if (outcome === "duplicate") return `duplicate of ${duplicateOf ?? "an event that has left the log"}.${decided}`;
  return outcome === "superseded" ? `superseded.${decided}` : `applied: ${outcome}.${decided}`;
}
