export type { Answer } from "./answer.ts";
export { AcceptedBody, DryRunBody, InvalidDataBody, RefusalBody } from "./answer-bodies.ts";
export * as answers from "./answers.ts";
export {
  type BookingField,
  type BookingFieldName,
  BookingInput,
  bookingFields,
} from "./booking-input.ts";
export {
  BookingReference,
  bookingReferenceOf,
  type ReferenceKind,
  referenceKindOf,
  referenceKinds,
} from "./booking-reference.ts";
export { countJsonValues, maxJsonValues } from "./count-json-values.ts";
export { datePattern } from "./date-pattern.ts";
export {
  type EnvelopeParsing,
  EventEnvelope,
  envelopeVersion,
  parseEnvelope,
  parseEnvelopeText,
} from "./event-envelope.ts";
export { type EventKind, eventKinds } from "./event-kind.ts";
export type { FieldType } from "./field-types.ts";
export { type FieldWarning, findWarnings } from "./find-warnings.ts";
export { idempotencyKeyPattern, isIdempotencyKey } from "./idempotency-key.ts";
export * as lookupAnswers from "./lookup-answers.ts";
export type {
  BookingStatus,
  Difference,
  ListedReference,
  Receipt,
  ReconciliationCounts,
  ReconciliationSummary,
} from "./lookup-bodies.ts";
export { parseJson } from "./parse-json.ts";
export { JsonError } from "./parse-json-exactly.ts";
export { parseJsonObject, readJsonObject } from "./parse-json-object.ts";
export { maxNestingLevels } from "./unknown-fields.ts";
export { type BookingPayload, type PayloadValidation, validatePayload } from "./validate-payload.ts";
export { maxViolations, Violation, type ViolationCode, violationCodes } from "./violation.ts";
export { maxWarnings, Warning, type WarningCode, warningCodes } from "./warning.ts";
