import * as v from "valibot";
import { parseJson } from "../json/parse-json.ts";
import { utcInstantPattern } from "../payload/date-pattern.ts";
import { eventKinds } from "../payload/event-kind.ts";
import { isPlainObject } from "../payload/plain-object.ts";
import { findReferenceViolation } from "../payload/reference-rule.ts";
import { isStorableText } from "../payload/storable-text.ts";
import { findUnstorable } from "../payload/storable-value.ts";
import { type BookingPayload, everyIssue } from "../payload/validate-payload.ts";
import { idempotencyKeyPattern } from "./idempotency-key.ts";

/** Increased when readers of the old envelope could misread the new one. Deploy readers of the new version first. */
export const envelopeVersion = 1;

/** An ISO 3166-1 alpha-2 code. Which of them are countries is decided where a number is read. */
const countryPattern = /^[A-Z]{2}$/;
/** A later release may have others. The worker joins them by spaces. */
const warningPattern = /^[a-z-]{1,40}$/;
const secretIdPattern = /^[A-Za-z0-9_-]{1,64}$/;
const sampledTraceparentPattern = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-01$/;

const fields = v.object(
  {
    /** The version of the envelope's format. */
    version: v.literal(envelopeVersion, `Must be ${envelopeVersion}.`),
    /** The event's identity and the partner's receipt: a lowercase UUID, which is how PostgreSQL writes it. */
    eventId: v.pipe(
      v.string("Must be a string."),
      v.regex(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/, "Must be a lowercase UUID."),
    ),
    /** What happened to the booking. */
    kind: v.picklist(eventKinds, `Must be one of ${eventKinds.join(", ")}.`),
    /** The id of the partner who sent the event. */
    partner: v.pipe(
      v.string("Must be a string."),
      v.nonEmpty("Must not be empty."),
      v.check(isStorableText, "Must be text that a database can store."),
    ),
    /** The event's position in the order of receipt: the time in microseconds, unless a clock was set back. */
    sequence: v.pipe(
      v.number("Must be a number."),
      v.safeInteger("Must be an integer below 2^53."),
      v.minValue(1, "Must be positive."),
    ),
    /** When the event was received: UTC with milliseconds, such as 2026-06-14T07:27:17.335Z. */
    receivedAt: v.pipe(
      v.string("Must be a string."),
      v.regex(utcInstantPattern, "Must be a date-time in UTC with milliseconds, such as 2026-06-14T07:27:17.335Z."),
    ),
    /** The partner's key for the event: 1 to 255 visible ASCII characters and spaces, or null if the partner sent none. */
    idempotencyKey: v.nullable(
      v.pipe(
        v.string("Must be a string or null."),
        v.regex(idempotencyKeyPattern, "Must be 1 to 255 visible ASCII characters or spaces."),
      ),
    ),
    /** The id of the secret by which the event came, if it is known. A wrong one counts as none, and harms nothing. */
    secretId: v.optional(v.fallback(v.nullable(v.pipe(v.string(), v.regex(secretIdPattern))), null)),
    /** Where the partner's phone numbers without a country code are: ISO 3166-1 alpha-2. A wrong one counts as none. */
    defaultCountry: v.optional(v.fallback(v.nullable(v.pipe(v.string(), v.regex(countryPattern))), null)),
    /** The codes of what ingest warned the partner of, if anything, each once. Wrong ones count as none. */
    warnings: v.optional(v.fallback(v.array(v.pipe(v.string(), v.regex(warningPattern))), [])),
    /** The W3C traceparent of the span that queued the event, if it is sampled. A wrong one counts as none. */
    traceparent: v.optional(v.fallback(v.nullable(v.pipe(v.string(), v.regex(sampledTraceparentPattern))), null)),
    /** True for an event of a test partner, whose bookings are apart from all others. No other value is allowed. */
    test: v.optional(v.literal(true, "Must be true or absent.")),
    /** The payload as the partner sent it. It satisfied the rules of its kind when it was accepted. */
    payload: v.custom<BookingPayload>(isPlainObject, "Must be an object."),
  },
  "Must be present.",
);

/**
 * The schema checks only what the worker needs from the payload: which booking it is about, and that it can be stored.
 * Ingest has already applied the rules for partners, and a rule added in a new release must not refuse events that an
 * earlier release accepted.
 */
function requireUsablePayload(options?: { hasStorableTexts: boolean }) {
  return v.rawCheck<v.InferOutput<typeof fields>>(({ dataset, addIssue }) => {
    if (!dataset.typed) return;
    const { payload } = dataset.value;
    const violation = findReferenceViolation(payload) ?? findUnstorable(payload, options);
    if (violation === null) return;
    const [first, ...rest] = ["payload", ...violation.propertyPath].map(toPathItem);
    addIssue({ message: violation.message, path: first && [first, ...rest] });
  });
}

/** An accepted event on its way from ingest, which stored it durably, to the worker, which applies it. */
export const EventEnvelope = v.pipe(fields, requireUsablePayload());
export type EventEnvelope = v.InferOutput<typeof EventEnvelope>;

/** The same, for one whose texts need no check. */
const EnvelopeOfStorableTexts = v.pipe(fields, requireUsablePayload({ hasStorableTexts: true }));

export type EnvelopeParsing =
  | { success: true; envelope: EventEnvelope }
  | {
      success: false;
      problem: string;
      /** Whether the envelope appears to come from a later release, which can read it. */
      isOfLaterVersion: boolean;
    };

/** A problem is stored and shown as one line, where a very long path does not help the reader. */
const maxPathLength = 200;

/**
 * Parses an envelope that may come from another release, or from another program. Never throws.
 *
 * @param value the parsed content of the queue's job
 * @returns the envelope, whose payload is the same object as in `value`; or the problem, as sentences that name each
 *   invalid path but no value, in text that PostgreSQL can store
 */
export function parseEnvelope(value: unknown): EnvelopeParsing {
  return parseBy(EventEnvelope, value);
}

function parseBy(schema: typeof EventEnvelope, value: unknown): EnvelopeParsing {
  if (!isPlainObject(value)) return toFailure("The envelope must be an object.");
  const { version } = value;
  if (version !== envelopeVersion)
    return {
      ...toFailure(unknownVersion),
      isOfLaterVersion: Number.isSafeInteger(version) && Number(version) > envelopeVersion,
    };
  const { success, output, issues } = v.safeParse(schema, value, everyIssue);
  return success ? { success, envelope: output } : toFailure(toProblem(issues));
}

function toFailure(problem: string) {
  return { success: false, problem, isOfLaterVersion: false } as const;
}

/** Like {@link parseEnvelope}, for a text that may not be JSON. A problem does not repeat any of the text. */
export function parseEnvelopeText(text: string): EnvelopeParsing {
  let value: unknown;
  try {
    value = parseJson(text, { numbersOf: (envelope) => Object(envelope).payload });
  } catch {
    return toFailure("The envelope must be JSON.");
  }
  // Without that escape, JSON can't express U+0000, nor an unpaired surrogate that it does not contain itself. To look
  // for them in each name and value was an eighth of what a worker did with an event's JSON.
  const hasStorableTexts = !text.includes("\\u") && text.isWellFormed();
  return parseBy(hasStorableTexts ? EnvelopeOfStorableTexts : EventEnvelope, value);
}

const unknownVersion =
  `The envelope's version is unknown: this release reads only version ${envelopeVersion}. Run a release ` +
  "that reads the other version.";

function toProblem(issues: readonly v.BaseIssue<unknown>[]): string {
  return issues.map(({ message, path = [] }) => `${toPathText(path)}: ${message}`).join(" ");
}

/**
 * For example `payload.consumerPhone`. Partners choose the names of unlisted fields, so unusual names are written as
 * JSON.
 */
function toPathText(path: readonly { key: unknown }[]): string {
  const names = path.map(({ key }) => String(key));
  const text = names.map((name) => (/^\w+$/.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`)).join("");
  return text.length <= maxPathLength ? text.slice(1) : `${text.slice(1, maxPathLength).toWellFormed()}…`;
}

function toPathItem(key: string): v.UnknownPathItem {
  return { type: "unknown", origin: "value", input: undefined, key, value: undefined };
}
