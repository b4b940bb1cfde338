import type { PlannedBooking, Reason } from "./plan-restore.ts";

/** What is known of the bookings of a restore so far. Only some are kept, so that memory stays bounded. */
export class RestoreSummary {
  readonly counts: Record<"update" | "delete" | Reason, number> = {
    update: 0,
    delete: 0,
    same: 0,
    new: 0,
    "in-queue": 0,
    "changed-meanwhile": 0,
    "not-in-log": 0,
    erased: 0,
    unknown: 0,
  };
  /** How often each field would change. */
  readonly fields = new Map<string, number>();
  /** Those that are not as they were. */
  readonly shown: PlannedBooking[] = [];
  omitted = 0;
  changedByOthers = 0;
  withDeadLetters = 0;
  queued = 0;
  readonly #maxShown: number;

  constructor({ maxShown }: { maxShown: number }) {
    this.#maxShown = maxShown;
  }

  /** How many bookings are put back, or deleted. */
  get restorable(): number {
    return this.counts.update + this.counts.delete;
  }

  add(booking: PlannedBooking): void {
    const { action, reason, changedFields, changesOfOthers, deadLetters } = booking;
    const what = action ?? reason;
    if (what === null) throw new Error("A booking that stays as it is has a reason.");
    this.counts[what] += 1;
    if (what === "same") return;
    if (action === "update")
      for (const field of changedFields) this.fields.set(field, (this.fields.get(field) ?? 0) + 1);
    if (action !== null && changesOfOthers > 0) this.changedByOthers += 1;
    if (deadLetters > 0) this.withDeadLetters += 1;
    if (this.shown.length < this.#maxShown) this.shown.push(booking);
    else this.omitted += 1;
  }
}
