import * as v from "valibot";
import { utcInstantPattern } from "./date-pattern.ts";
import { eventKinds } from "./event-kind.ts";
import { idempotencyKeyPattern } from "./idempotency-key.ts";
import { isPlainObject } from "./plain-object.ts";
import { findWrongReference } from "./reference-rule.ts";
import { isStorableText } from "./storable-text.ts";
import { findUnstorable } from "./storable-value.ts";
import { type BookingPayload, everyIssue } from "./validate-payload.ts";

/** Raised when a reader of the old envelope could misread the new one. Readers of the new one are deployed first. */
export const envelopeVersion = 1;

/**
 * An accepted event on its way from the edge, which made it durable, to the worker, which applies it.
 *
 * Of the payload it asks only what the worker needs: which booking it is about, and that it can be stored. What partners
 * may send was asked before the event was accepted. A rule that a release adds must not refuse what an earlier one has
 * accepted.
 */
export const EventEnvelope = v.pipe(
  v.object(
    {
      /** The version of this shape. */
      version: v.literal(envelopeVersion, `Must be ${envelopeVersion}.`),
      /** The event's identity, and the partner's receipt: a UUID in lower case, which is how PostgreSQL writes it. */
      eventId: v.pipe(
        v.string("Must be a string."),
        v.regex(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/, "Must be a UUID in lower case."),
      ),
      /** What the event tells of its booking. */
      kind: v.picklist(eventKinds, `Must be one of ${eventKinds.join(", ")}.`),
      /** The id of the partner who sent the event. */
      partner: v.pipe(
        v.string("Must be a string."),
        v.nonEmpty("Must not be empty."),
        v.check(isStorableText, "Must be text that a database can hold."),
      ),
      /** The order of receipt among all events: microseconds, the time of receipt unless a clock was set back. */
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
      /** The partner's key for the event: 1 to 255 visible ASCII characters. null: the partner sent none. */
      idempotencyKey: v.nullable(
        v.pipe(
          v.string("Must be a string or null."),
          v.regex(idempotencyKeyPattern, "Must be 1 to 255 visible ASCII characters."),
        ),
      ),
      /** What the partner sent, unchanged. It had the rules of its kind when it was accepted. */
      payload: v.custom<BookingPayload>(isPlainObject, "Must be an object."),
    },
    "Must be there.",
  ),
  v.rawCheck(({ dataset, addIssue }) => {
    if (!dataset.typed) return;
    const violation = findWrongReference(dataset.value.payload) ?? findUnstorable(dataset.value.payload);
    if (violation === null) return;
    const [first, ...rest] = ["payload", ...violation.propertyPath].map(toPathItem);
    addIssue({ message: violation.message, path: first && [first, ...rest] });
  }),
);
export type EventEnvelope = v.InferOutput<typeof EventEnvelope>;

export type EnvelopeParsing =
  | { success: true; envelope: EventEnvelope }
  | {
      success: false;
      problem: string;
      /** It is an envelope of a later release, as far as can be told: one that knows it can read it. */
      isOfLaterVersion: boolean;
    };

/** A problem is kept and shown as one line; whoever reads it does not need all of a long path. */
const maxPathLength = 200;

/**
 * Reads an envelope that may come from another release, or from something that is no release of ours. Never throws.
 *
 * @param value what came out of the queue, already parsed
 * @returns the envelope, its payload being the very object that was given. Or the problem: sentences that name each
 *   path that is wrong, and no value, in text that PostgreSQL can store
 */
export function parseEnvelope(value: unknown): EnvelopeParsing {
  if (!isPlainObject(value)) return toFailure("The envelope must be an object.");
  const { version } = value;
  if (version !== envelopeVersion)
    return {
      ...toFailure(unknownVersion),
      isOfLaterVersion: Number.isSafeInteger(version) && Number(version) > envelopeVersion,
    };
  const { success, output, issues } = v.safeParse(EventEnvelope, value, everyIssue);
  return success ? { success, envelope: output } : toFailure(toProblem(issues));
}

function toFailure(problem: string) {
  return { success: false, problem, isOfLaterVersion: false } as const;
}

/** The same for an envelope that was not parsed. It need not be JSON; a problem tells nothing of the text either. */
export function parseEnvelopeText(text: string): EnvelopeParsing {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return toFailure("The envelope must be JSON.");
  }
  return parseEnvelope(value);
}

const unknownVersion = `The envelope's version is unknown: this release reads version ${envelopeVersion} only. Run one that knows the other.`;

function toProblem(issues: readonly v.BaseIssue<unknown>[]): string {
  return issues.map(({ message, path = [] }) => `${toPathText(path)}: ${message}`).join(" ");
}

/** `payload.consumerPhone`; names that a partner made up may be anything, so they are written as JSON. */
function toPathText(path: readonly { key: unknown }[]): string {
  const names = path.map(({ key }) => String(key));
  const text = names.map((name) => (/^\w+$/.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`)).join("");
  return text.length <= maxPathLength ? text.slice(1) : `${text.slice(1, maxPathLength).toWellFormed()}…`;
}

function toPathItem(key: string): v.UnknownPathItem {
  return { type: "unknown", origin: "value", input: undefined, key, value: undefined };
}
