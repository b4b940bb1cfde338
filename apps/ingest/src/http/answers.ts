import type { Violation } from "@booking-events/schema";

/** What a partner gets. Every body that this service sends is made in this file; none holds a secret or a value. */
export interface Answer {
  status: number;
  /** JSON. */
  body: string;
  /** What the log calls it, as a code. */
  outcome: string;
  headers?: Readonly<Record<string, string>>;
}

/** Both count from 1, columns in UTF-16 code units. */
export interface TextPosition {
  line: number;
  column: number;
}

/** Thrown where a request can't go on; it carries the answer. */
export class Refusal extends Error {
  override name = "Refusal";
  readonly answer: Answer;
  /** The cause for the log, where the answer must not tell it. */
  readonly outcome: string;

  constructor(answer: Answer, options: { outcome?: string; cause?: unknown } = {}) {
    super(answer.outcome, { cause: options.cause });
    this.answer = answer;
    this.outcome = options.outcome ?? answer.outcome;
  }
}

export const accepted = (eventId: string): Answer => ({
  status: 200,
  outcome: "accepted",
  body: JSON.stringify({ success: true, eventId }),
});

export const dryRunPassed: Answer = {
  status: 200,
  outcome: "dry-run-passed",
  body: JSON.stringify({ success: true, dryRun: true }),
};

/** The same bytes for every cause, so that a guesser learns nothing. */
export const invalidSecret = refused(403, "invalid-secret", "Invalid secret");

export const invalidData = (violationList: Violation[]): Answer => ({
  status: 422,
  outcome: "invalid-data",
  body: JSON.stringify({ message: "Invalid data", violationList }),
});

export const malformedHttp = refused(
  400,
  "malformed-http",
  "The request is not valid HTTP/1.1, or its method is not known. Use POST, with a Host header.",
);
export const repeatedHost = refused(400, "repeated-host", "The request has more than one Host header. Send one.");
export const twoContentTypes = refused(
  400,
  "two-content-types",
  "The request has two different Content-Type headers. Send one.",
);
export const invalidUtf8 = refused(400, "invalid-utf8", "The body is not valid UTF-8.");
export const malformedJson = ({ line, column }: TextPosition): Answer =>
  refused(400, "malformed-json", `The body is not valid JSON: see line ${line}, column ${column}.`);
/** Without the key, which may be anything. */
export const repeatedJsonKey = ({ line, column }: TextPosition): Answer =>
  refused(
    400,
    "repeated-json-key",
    `The body has the same key twice in one JSON object: see line ${line}, column ${column}.`,
  );
export const notAnObject = refused(400, "not-an-object", "The body must be one JSON object.");
export const malformedFormEscape = refused(
  400,
  "malformed-form",
  "The body has a percent sign without two hex digits, or percent escapes that are not valid UTF-8.",
);
export const jsonSentAsForm = refused(
  400,
  "json-sent-as-form",
  "The body is JSON, but was sent as a form. Set the header Content-Type: application/json.",
);
export const repeatedByteOrderMark = refused(
  400,
  "repeated-byte-order-mark",
  "The body starts with more than one byte order mark. Send none.",
);
export const repeatedFormField = refused(400, "repeated-form-field", "The body has the same form field twice.");
export const nestedFormField = refused(
  400,
  "nested-form-field",
  "The body has a form field with brackets in its name. Send a flat list of fields.",
);
export const invalidIdempotencyKey = refused(
  400,
  "invalid-idempotency-key",
  "The header Idempotency-Key (or webhook-id) must appear once, with 1 to 255 visible ASCII characters.",
);
export const differentKeys = refused(
  400,
  "different-idempotency-keys",
  "The headers Idempotency-Key and webhook-id mean the same, but have different values. Send one of them.",
);
export const invalidDryRun = refused(400, "invalid-dry-run", "The header X-Dry-Run must be true or false.");

export const notFound = refused(
  404,
  "no-such-path",
  "No such path. Use /booking-event/create/{secret}, /booking-event/update/{secret} or /booking-event/delete/{secret}.",
);
export const methodNotAllowed = refused(405, "wrong-method", "Use the method POST.", { Allow: "POST" });
export const requestTimeout = refused(408, "too-slow", "The request did not arrive in time.");
export const bodyTooLarge = (limitBytes: number): Answer =>
  refused(413, "body-too-large", `The body is larger than ${limitBytes} bytes.`);
export const unsupportedType = refused(
  415,
  "unsupported-type",
  "Send the body in UTF-8, with Content-Type: application/json or application/x-www-form-urlencoded.",
);
export const unsupportedEncoding = refused(
  415,
  "unsupported-encoding",
  "Send the body uncompressed, without the header Content-Encoding.",
);
export const headersTooLarge = refused(431, "headers-too-large", "The URL and the headers are too large together.");

/** Authentic, but more than the partner's limit allows. */
export const overRateLimit = (retryAfterS: number): Answer =>
  refused(
    429,
    "over-rate-limit",
    "You send more requests than your limit allows. Send the same request again after the time in Retry-After.",
    { "Retry-After": String(retryAfterS) },
  );
/** In place of {@link invalidSecret}, and as blind to the cause. Each further guess needs a connection of its own. */
export const tooManyGuesses = (retryAfterS: number): Answer =>
  refused(
    429,
    "too-many-guesses",
    "Too many requests with an invalid secret came from your address. Correct the secret, and wait for the time in Retry-After.",
    { "Retry-After": String(retryAfterS), Connection: "close" },
  );

/** Before anything was done for it. */
export const overloaded = refused(
  503,
  "overloaded",
  "There are more events than can be taken now. Send the same request again after the time in Retry-After.",
  { "Retry-After": "5" },
);

/** What one partner sends at a time takes longer to read than is left for it. */
export const tooMuchToRead = refused(
  503,
  "too-much-to-read",
  "You send more data at a time than can be read now. Send the same request again after the time in Retry-After, or send smaller bodies.",
  { "Retry-After": "1" },
);

export const internalError = refused(
  500,
  "internal-error",
  "Something went wrong on our side. Send the same request again later.",
);
/** We have no partners file, or an empty one. A 403 would tell a partner to stop. */
export const partnersUnknown = refused(
  503,
  "partners-unknown",
  "Secrets can't be checked now. Send the same request again after the time in Retry-After.",
  { "Retry-After": "5" },
);
/** The event may be queued all the same, when only the confirmation is missing: the partner's retry is a duplicate. */
export const queueUnavailable = refused(
  503,
  "queue-unavailable",
  "The event could not be stored now. Send the same request again after the time in Retry-After.",
  { "Retry-After": "5" },
);
export const shuttingDown = refused(
  503,
  "shutting-down",
  "This server is shutting down. Send the same request again after the time in Retry-After.",
  { "Retry-After": "1" },
);

function refused(status: number, outcome: string, message: string, headers?: Record<string, string>): Answer {
  const answer = { status, outcome, body: JSON.stringify({ message }) };
  return headers === undefined ? answer : { ...answer, headers };
}
