import * as v from "valibot";
import { referenceKinds } from "../payload/reference-rule.ts";
import { Readings } from "./readings.ts";

/*
 * The bodies of questions and of their answers. Each comment is also a description in the OpenAPI document, so a member
 * that several bodies share has one comment: run `npm run json-schema` after a change. Later releases may add members.
 */

const maxReferenceLength = 8_192;

const eventId = () => v.pipe(v.string(), v.uuid());
const digest = () => v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/));

const ofEvent = {
  /** The event that you asked about. */
  eventId: eventId(),
};
const ofAppliedEvent = {
  ...ofEvent,
  decidedBy: v.nullable(eventId()),
  /** Codes of what you should know, from our answer to the event or since, such as `booking-unknown`. Absent: none. */
  warnings: v.optional(v.array(v.string())),
};

/** What became of an event. */
export const receiptBodies = {
  waiting: v.object({
    ...ofEvent,
    /** What became of the event. */
    status: v.literal("waiting"),
  }),
  applied: v.object({
    ...ofAppliedEvent,
    status: v.literal("applied"),
    /** What the event did to the booking. */
    outcome: v.picklist(["created", "updated", "recreated", "deleted", "unchanged"]),
  }),
  duplicate: v.object({
    ...ofAppliedEvent,
    status: v.literal("duplicate"),
    /** The earlier event that this one repeats. Null: it is so old that it has left our log. */
    duplicateOf: v.nullable(eventId()),
  }),
  superseded: v.object({ ...ofAppliedEvent, status: v.literal("superseded") }),
  failed: v.object({
    ...ofEvent,
    status: v.literal("failed"),
    /** Names the reason. Quote it when you ask us. */
    code: v.string(),
  }),
  expired: v.object({ ...ofEvent, status: v.literal("expired") }),
  erased: v.object({ ...ofEvent, status: v.literal("erased") }),
};
type ReceiptBodies = typeof receiptBodies;
export type Receipt = { [Status in keyof ReceiptBodies]: v.InferOutput<ReceiptBodies[Status]> }[keyof ReceiptBodies];

const ofStoredBooking = {
  /** How many events have changed the booking. */
  revision: v.pipe(v.number(), v.integer()),
  /** The event that decides the booking now. */
  decidedBy: eventId(),
  /** When we received the event that decides the booking now. */
  updatedAt: v.pipe(v.string(), v.isoTimestamp()),
};

/** How a booking stands. */
export const bookingBodies = {
  active: v.object({
    /** Whether the booking is active or deleted, or was erased on request. */
    state: v.literal("active"),
    ...ofStoredBooking,
    /** The SHA-256 of the booking's content as canonical JSON (RFC 8785), in hex. */
    digest: digest(),
    /** What we read of the fields that you asked for with `fields`. Absent: you asked for none. */
    readings: v.exactOptional(Readings),
  }),
  deleted: v.object({ state: v.literal("deleted"), ...ofStoredBooking }),
  erased: v.object({ state: v.literal("erased") }),
};
type BookingBodies = typeof bookingBodies;
export type BookingStatus = {
  [State in keyof BookingBodies]: v.InferOutput<BookingBodies[State]>;
}[keyof BookingBodies];

const ofReference = {
  /** The reference that identifies the booking. */
  reference: v.pipe(v.string(), v.nonEmpty(), v.regex(/\S/), v.maxCodePoints(maxReferenceLength)),
  /** Which of the two references it is. Default: trip. */
  referenceKind: v.optional(v.picklist(referenceKinds)),
};

/** A booking that is active at your end. */
export const ListedReference = v.object({
  ...ofReference,
  digest: v.optional(digest()),
});
export type ListedReference = v.InferOutput<typeof ListedReference>;

/** A booking that is not the same here and at your end. */
export const Difference = v.object({
  ...ofReference,
  /** How our booking differs from yours. */
  result: v.picklist(["missing", "different", "deleted-here", "unknown", "erased"]),
  updatedAt: v.optional(ofStoredBooking.updatedAt),
});
export type Difference = v.InferOutput<typeof Difference>;

const count = () => v.pipe(v.number(), v.integer());

const ReconciliationCounts = v.object({
  references: count(),
  same: count(),
  missing: count(),
  different: count(),
  "deleted-here": count(),
  erased: count(),
  unknown: count(),
});
/** How many bookings were listed, and how many have each result. */
export type ReconciliationCounts = v.InferOutput<typeof ReconciliationCounts>;

/** The last line of the answer. */
export const ReconciliationSummary = v.object({
  /** How many references were listed, and how many bookings have each result. */
  summary: ReconciliationCounts,
});
export type ReconciliationSummary = v.InferOutput<typeof ReconciliationSummary>;
