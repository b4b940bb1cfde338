/**
 * What became of an event, for its partner. Ids and codes only.
 * - `waiting`: it is stored, and will be applied
 * - `applied`: `outcome` says what it did
 * - `duplicate`: it repeats the event `duplicateOf`, and changed nothing
 * - `superseded`: a later event was applied first, so it changed nothing
 * - `failed`: it could not be applied. Quote the code when you ask for support
 * - `expired`: it was too old when it was processed
 * - `erased`: its booking was erased on request
 */
export type Receipt = { eventId: string } & (
  | { status: "waiting" }
  | ({ status: "applied"; outcome: AppliedOutcome } & Decision)
  | ({ status: "duplicate"; duplicateOf: string | null } & Decision)
  | ({ status: "superseded" } & Decision)
  | { status: "failed"; code: string }
  | { status: "expired" }
  | { status: "erased" }
);

export type AppliedOutcome = "created" | "updated" | "deleted" | "recreated" | "unchanged";

interface Decision {
  /** The event that decides the booking now. */
  decidedBy: string | null;
  /** Likely mistakes of the sender, such as `key-reused`. */
  warnings?: readonly string[];
}
