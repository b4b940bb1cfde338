import type { BookingInput } from "../payload/booking-input.ts";
import type { BookingReference } from "../payload/booking-reference.ts";
import type { EventKind } from "../payload/event-kind.ts";
import type { Violation } from "../payload/violation.ts";
import type { Warning } from "../warnings/warning.ts";

export interface BatchEvent {
  kind: EventKind;
  payload: BookingInput | BookingReference;
  /** As with a single event: set it if you may send the event again after a restart. */
  idempotencyKey?: string | undefined;
}

/** What became of one event of a batch. */
export interface BatchAnswer {
  /** The number of the event, from 1. */
  line: number;
  idempotencyKey: string;
  /** As a single event would have got it: 200 if the event is stored. */
  status: number;
  /** Your receipt, if the event is stored. */
  eventId?: string;
  warnings?: Warning[];
  /** The reason, if the event was refused. */
  code?: string;
  message?: string;
  violationList?: Violation[];
}
