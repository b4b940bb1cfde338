import * as v from "valibot";
import { utcInstantPattern } from "./date-pattern.ts";
import { eventKinds } from "./event-kind.ts";
import { idempotencyKeyPattern } from "./idempotency-key.ts";
import { isPlainObject } from "./plain-object.ts";
import { isStorableText } from "./storable-text.ts";
import { type BookingPayload, everyIssue, validatePayload } from "./validate-payload.ts";

/** Raised when a reader of the old envelope could misread the new one. Readers of the new one are deployed first. */
export const envelopeVersion = 1;

/** An accepted event on its way from the edge, which made it durable, to the worker, which applies it. */
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
      /** What the partner sent, unchanged. The kind decides on its rules. */
      payload: v.custom<BookingPayload>(isPlainObject, "Must be an object."),
    },
    "Must be there.",
  ),
  v.rawCheck(({ dataset, addIssue }) => {
    if (!dataset.typed) return;
    const { kind, payload } = dataset.value;
    const result = validatePayload(kind, payload);
    if (result.success) return;
    for (const { message, propertyPath } of result.violationList) {
      const [first, ...rest] = ["payload", ...propertyPath].map(toPathItem);
      addIssue({ message, path: first && [first, ...rest] });
    }
  }),
);
export type EventEnvelope = v.InferOutput<typeof EventEnvelope>;

export type EnvelopeParsing = { success: true; envelope: EventEnvelope } | { success: false; problem: string };

/** A problem is kept and shown as one line; whoever reads it needs the first few paths, and not all of a long one. */
const maxPathsInProblem = 10;
const maxPathLength = 200;

/**
 * Reads an envelope that may come from another release, or from something that is no release of ours. Never throws.
 *
 * @param value what came out of the queue, already parsed
 * @returns the envelope, its payload being the very object that was given. Or the problem: sentences that name each
 *   path that is wrong, and no value, in text that PostgreSQL can store
 */
export function parseEnvelope(value: unknown): EnvelopeParsing {
  if (!isPlainObject(value)) return { success: false, problem: "The envelope must be an object." };
  const { version } = value;
  if (version !== envelopeVersion) return { success: false, problem: unknownVersion };
  const { success, output, issues } = v.safeParse(EventEnvelope, value, everyIssue);
  return success ? { success, envelope: output } : { success, problem: toProblem(issues) };
}

/** The same for an envelope that was not parsed. It need not be JSON; a problem tells nothing of the text either. */
export function parseEnvelopeText(text: string): EnvelopeParsing {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { success: false, problem: "The envelope must be JSON." };
  }
  return parseEnvelope(value);
}

const unknownVersion = `The envelope's version is unknown: this release reads version ${envelopeVersion} only. Run one that knows the other.`;

function toProblem(issues: readonly v.BaseIssue<unknown>[]): string {
  const sentences = issues
    .slice(0, maxPathsInProblem)
    .map(({ message, path = [] }) => `${toPathText(path)}: ${message}`);
  const unsaid = issues.length - sentences.length;
  return sentences.join(" ") + (unsaid > 0 ? ` And ${unsaid} more.` : "");
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
