import { Refusal } from "@booking-events/http";
import { type AcceptedEvent, subjectOf } from "@booking-events/queue";
import {
  answers,
  type BookingPayload,
  type EventKind,
  type FieldWarning,
  findReference,
  findWarnings,
  limitWarnings,
  validatePayload,
} from "@booking-events/schema";
import type { BodyObject } from "../body/decode-body.ts";
import type { ConvertedMidnights } from "../observe/converted-midnights.ts";
import type { CountUnknownFields } from "../observe/count-unknown-fields.ts";
import { describeViolations } from "../observe/count-violations.ts";

export interface JudgingOptions {
  countUnknownFields: CountUnknownFields;
  convertedMidnights: Pick<ConvertedMidnights, "check">;
}

/** What somebody sent, as one object. */
export interface SentEvent {
  kind: EventKind;
  object: BodyObject;
  /** The object as JSON, if it is known. */
  json: string | undefined;
  idempotencyKey: string | null;
  /** About how it was sent. */
  warnings: readonly FieldWarning[];
}

/** A valid event. */
export interface JudgedEvent
  extends Pick<AcceptedEvent, "kind" | "payload" | "payloadJson" | "idempotencyKey" | "test"> {
  payload: BookingPayload;
  warnings: FieldWarning[];
}

/**
 * Validates an event, and finds what its sender should know about it.
 *
 * @throws Refusal if it is invalid
 */
export function judgeEvent(
  { kind, object, json, idempotencyKey, warnings }: SentEvent,
  partner: { id: string; country?: string | null | undefined; test: boolean },
  { countUnknownFields, convertedMidnights }: JudgingOptions,
): JudgedEvent {
  const payload = checkPayload(partner.id, kind, object);
  const likelyMistakes = findWarnings(kind, payload, { defaultCountry: partner.country ?? null });
  countUnknownFields(partner.id, payload);
  // The dates of a delete are not applied.
  const midnights = kind === "delete" ? [] : convertedMidnights.check(partner.id, payload);
  const all = limitWarnings([...warnings, ...likelyMistakes, ...midnights]);
  const test = partner.test || undefined;
  return { kind, payload, payloadJson: json, idempotencyKey, test, warnings: all };
}

function checkPayload(partner: string, kind: EventKind, object: BodyObject): BookingPayload {
  const result = validatePayload(kind, object);
  if (result.success) return result.payload;
  const { violationList } = result;
  const violations = describeViolations(violationList);
  const reference = findReference(object)?.reference ?? "";
  const subject = reference === "" ? {} : { subject: subjectOf(partner, reference) };
  throw new Refusal(answers.invalidData(violationList), { violations, ...subject });
}

/** Returns undefined if there are none, so that most events carry nothing. */
export function listCodes(warnings: readonly FieldWarning[]): string[] | undefined {
  return warnings.length === 0 ? undefined : [...new Set(warnings.map(({ code }) => code))];
}
