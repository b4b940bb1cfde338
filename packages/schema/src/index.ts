export type { Activity } from "./answers/activity.ts";
export type { Answer } from "./answers/answer.ts";
export { AcceptedBody, DryRunBody, InvalidDataBody, RefusalBody } from "./answers/answer-bodies.ts";
export * as answers from "./answers/answers.ts";
export { toBatchLine } from "./answers/batch-line.ts";
export { type ListViolation, maxListViolations } from "./answers/list-violations.ts";
export * as lookupAnswers from "./answers/lookup-answers.ts";
export type {
  BookingStatus,
  Difference,
  ListedReference,
  Receipt,
  ReconciliationCounts,
  ReconciliationSummary,
} from "./answers/lookup-bodies.ts";
export {
  type EnvelopeParsing,
  EventEnvelope,
  envelopeVersion,
  parseEnvelope,
  parseEnvelopeText,
} from "./envelope/event-envelope.ts";
export { idempotencyKeyPattern, isIdempotencyKey } from "./envelope/idempotency-key.ts";
export { toCanonicalJson } from "./json/canonical-json.ts";
export { ExactNumber } from "./json/exact-number.ts";
export { parseJson } from "./json/parse-json.ts";
export { JsonError } from "./json/parse-json-exactly.ts";
export { parseJsonObject, readJsonObject } from "./json/parse-json-object.ts";
export { arrivalDayOf } from "./normalise/arrival-day.ts";
export { readDate } from "./normalise/date.ts";
export { readEmail } from "./normalise/email.ts";
export {
  type BookingField,
  type BookingFieldName,
  BookingInput,
  bookingFields,
} from "./payload/booking-input.ts";
export {
  BookingReference,
  bookingReferenceOf,
  referenceKindOf,
} from "./payload/booking-reference.ts";
export { cleanReference } from "./payload/clean-reference.ts";
export { countJsonValues, maxJsonValues } from "./payload/count-json-values.ts";
export { type EventKind, eventKinds } from "./payload/event-kind.ts";
export { findReference, type ReferenceKind, referenceKinds } from "./payload/reference-rule.ts";
export { replaceUnstorableText } from "./payload/replace-unstorable-text.ts";
export { maxNestingLevels } from "./payload/unknown-fields.ts";
export { type BookingPayload, type PayloadValidation, validatePayload } from "./payload/validate-payload.ts";
export { maxViolations, Violation, type ViolationCode, violationCodes } from "./payload/violation.ts";
export { type Charset, decodeFormFields, decodeText, decodeUtf8 } from "./text/decode-exactly.ts";
export { findWarnings } from "./warnings/find-warnings.ts";
export { limitWarnings } from "./warnings/limit-warnings.ts";
export { dayBeforeAdvice, requestWarnings } from "./warnings/request-warnings.ts";
export { type FieldWarning, maxWarnings, Warning, type WarningCode, warningCodes } from "./warnings/warning.ts";
