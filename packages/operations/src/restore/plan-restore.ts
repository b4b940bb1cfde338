import { type BookingPayload, parseJson, type ReferenceKind } from "@booking-events/schema";
import type { RestorableBooking } from "@booking-events/store";

/** Why a booking is left as it is. */
export const restoreReasons = {
  same: "as it was, in state and content",
  new: "it has come since",
  "in-queue": "it has events that are not applied yet: wait, and begin again",
  "changed-meanwhile": "it was changed after the preview, or while this ran; the newer event wins",
  "not-in-log": "the log no longer has what it was",
  erased: "erased bookings never come back",
  unknown: "the partner has no such booking",
};

export type Reason = keyof typeof restoreReasons;

export interface PlannedBooking {
  partner: string;
  referenceKind: ReferenceKind | null;
  reference: string;
  /** The kind of the event that restores it. Null: none does. */
  action: "update" | "delete" | null;
  reason: Reason | null;
  /** The names of the fields that get another value. */
  changedFields: string[];
  /** How many events of other secrets have changed it since, and are undone too. 0 if no secret is given. */
  changesOfOthers: number;
  /** Its open dead letters. They come before the restore in the order of receipt, whenever they are replayed. */
  deadLetters: number;
}

export interface RestoreRule {
  deleteNew: boolean;
  /** A place in the order of receipt. Bookings that later events have changed are left as they are. */
  seenUntil: number;
  isInQueue: (booking: RestorableBooking) => boolean;
}

/** Decides what becomes of a booking. */
export function planBooking(booking: RestorableBooking, rule: RestoreRule): Pick<PlannedBooking, "action" | "reason"> {
  const leave = (reason: Reason) => ({ action: null, reason });
  const { state, stateThen } = booking;
  if (booking.isErased) return leave("erased");
  if (booking.lastSequence > rule.seenUntil) return leave("changed-meanwhile");
  if (rule.isInQueue(booking)) return leave("in-queue");
  if (stateThen === null && !booking.isLogWhole) return leave("not-in-log");
  if (stateThen === null && state === "active")
    return rule.deleteNew ? { action: "delete", reason: null } : leave("new");
  if (stateThen !== "active") return state === "active" ? { action: "delete", reason: null } : leave("same");
  if (state === "active" && booking.hasSameContent) return leave("same");
  return booking.payloadThen === null ? leave("not-in-log") : { action: "update", reason: null };
}

/** What the restoring event sends. The digits of numbers are those that the partner sent. */
export function payloadOf(
  action: "update" | "delete",
  { payloadThen, referenceKind, reference }: RestorableBooking,
): BookingPayload {
  if (action === "update" && payloadThen !== null) return parseJson(payloadThen) as BookingPayload;
  return referenceKind === "trip"
    ? { consumerTripPartnerExternalReference: reference }
    : { consumerPartnerExternalReference: reference };
}
