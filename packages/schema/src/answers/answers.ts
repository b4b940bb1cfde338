import type { Violation } from "../payload/violation.ts";
import type { Warning } from "../warnings/warning.ts";
import { type Answer, refused, refusedForNow } from "./answer.ts";
import type { AcceptedBody, DryRunBody, InvalidDataBody } from "./answer-bodies.ts";

// Every body that answers an event. None contains a secret or a value. What a line of a batch may get as well speaks of the
// event, since a line has no body and no headers of its own.

/** Line and column count from 1; columns are UTF-16 code units. */
export interface TextPosition {
  line: number;
  column: number;
}

export const accepted = (
  eventId: string,
  warnings: readonly Warning[] = [],
  { test = false }: { test?: boolean | undefined } = {},
): Answer => ({
  status: 200,
  code: "accepted",
  body: JSON.stringify({
    success: true,
    eventId,
    ...(test && { test }),
    ...withWarnings(warnings),
  } satisfies AcceptedBody),
});

export const dryRunPassed = (warnings: readonly Warning[] = []): Answer => ({
  status: 200,
  code: "dry-run-passed",
  body: JSON.stringify({ success: true, dryRun: true, ...withWarnings(warnings) } satisfies DryRunBody),
});

/** The same bytes for every cause, so that nobody can learn anything by guessing secrets. */
export const invalidSecret = refused(403, "invalid-secret", "Invalid secret");

export const invalidData = (violationList: Violation[]): Answer => ({
  status: 422,
  code: "invalid-data",
  body: JSON.stringify({ message: "Invalid data", code: "invalid-data", violationList } satisfies InvalidDataBody),
});

export const malformedHttp = refused(
  400,
  "malformed-http",
  "The request is not valid HTTP/1.1, or its method is unknown. Send a POST request with a Host header.",
);
export const repeatedHost = refused(400, "repeated-host", "The request has more than one Host header. Send only one.");
export const twoContentTypes = refused(
  400,
  "two-content-types",
  "The request has conflicting Content-Type headers. Send only one.",
);
export const invalidUtf8 = refused(
  400,
  "invalid-utf8",
  "The event, or an escape of the form, is not valid UTF-8. Encode it in UTF-8. Outside of a batch, you may declare " +
    "its charset instead, such as Content-Type: application/json; charset=windows-1252.",
);
export const invalidUtf16 = refused(
  400,
  "invalid-utf16",
  "The body is not valid UTF-16. Start it with a byte order mark, or declare utf-16le or utf-16be.",
);
export const malformedJson = ({ line, column }: TextPosition): Answer =>
  refused(400, "malformed-json", `The event is not valid JSON. The error is at line ${line}, column ${column}.`);
/** The message does not contain the key, which may be any text. */
export const repeatedJsonKey = ({ line, column }: TextPosition): Answer =>
  refused(
    400,
    "repeated-json-key",
    `The event has a duplicate key in a JSON object. The duplicate is at line ${line}, column ${column}.`,
  );
export const notAnObject = refused(400, "not-an-object", "The event must be a single JSON object.");
/** For a body that begins like JSON and has no type, or another one. */
export const wrongContentType = ({ line, column }: TextPosition): Answer =>
  refused(
    400,
    "wrong-content-type",
    `The body begins with { but is not valid JSON. The error is at line ${line}, column ${column}. Send JSON with the ` +
      "header Content-Type: application/json, and write a { at the beginning of a form as %7B.",
  );
/** The message does not contain the name, which may be any text. */
export const equalNames = refused(
  400,
  "equal-names",
  "Two names in one object differ only in U+0000 or halves of surrogate pairs, which a database cannot store. " +
    "Check how they were encoded or truncated.",
);
export const repeatedByteOrderMark = refused(
  400,
  "repeated-byte-order-mark",
  "The body starts with more than one byte order mark. Remove them.",
);
export const repeatedFormField = refused(
  400,
  "repeated-form-field",
  "The form has a listed field more than once. Send each of them only once.",
);
export const invalidIdempotencyKey = refused(
  400,
  "invalid-idempotency-key",
  "The idempotency key (Idempotency-Key, webhook-id, or a line's idempotencyKey) must have 1 to 255 characters, " +
    "visible ASCII or spaces.",
);
export const differentIdempotencyKeys = refused(
  400,
  "different-idempotency-keys",
  "The request has two Idempotency-Key (or webhook-id) headers with different values. Send only one.",
);
export const invalidDryRun = refused(
  400,
  "invalid-dry-run",
  "The X-Dry-Run header must be true, 1 or yes, or else false, 0 or no.",
);

export const noSuchPath = refused(
  404,
  "no-such-path",
  "No such path. Use /booking-event/create/{secret}, /booking-event/update/{secret} or /booking-event/delete/{secret}, " +
    "or read /docs.",
);
/** For a question to ingest, which another service answers. */
export const askLookup = (lookupUrl?: string): Answer =>
  refused(
    404,
    "ask-lookup",
    `Another service answers this. ${lookupUrl === undefined ? "Ask us for its address." : `Send the request to ${lookupUrl}.`}`,
  );
/** @param allowed the methods of the path, the one to use first */
export const wrongMethod = (...allowed: [string, ...string[]]): Answer =>
  refused(405, "wrong-method", `Method not allowed. Use ${allowed[0]}.`, { Allow: allowed.join(", ") });
/** For a line of a batch. */
export const invalidLine = refused(
  400,
  "invalid-line",
  "Each line must be one JSON object with the members kind (create, update or delete) and payload (an object), and " +
    "perhaps idempotencyKey (a string). It may have no others.",
);
/** Ends a batch whose sender reads too few of its answers. */
export const answersUnread = refused(
  408,
  "answers-unread",
  "Too many answers wait to be read. Read them while you send, or send fewer lines in one batch.",
);
export const tooSlow = refused(408, "too-slow", "The request was not received in time. Send it again.");
export const bodyTooLarge = (limitBytes: number): Answer =>
  refused(413, "body-too-large", `The event exceeds the limit of ${limitBytes} bytes.`);
export const unsupportedType = refused(
  415,
  "unsupported-type",
  "The Content-Type is missing, malformed or not supported, or its charset is not. Send Content-Type: " +
    "application/json or application/x-www-form-urlencoded, in UTF-8.",
);
export const unsupportedEncoding = refused(
  415,
  "unsupported-encoding",
  "The encoding of the body is not supported. Send it uncompressed, without a Content-Encoding header.",
);
export const headersTooLarge = refused(431, "headers-too-large", "The URL and headers together are too large.");

/** For a valid secret whose partner has used up its limit. */
export const overRateLimit = (retryAfterS: number): Answer =>
  refusedForNow(429, "over-rate-limit", retryAfterS, "You have exceeded your rate limit.");
/** For a valid secret whose partner has sent as many bytes today as it may. */
export const quota = (retryAfterS: number): Answer =>
  refusedForNow(429, "quota", retryAfterS, "You have used up your quota of bytes for today.");
/**
 * Sent instead of {@link invalidSecret}, and reveals as little. Closing the connection makes each further guess more
 * expensive.
 */
export const tooManyGuesses = (retryAfterS: number): Answer =>
  refused(
    429,
    "too-many-guesses",
    "Too many requests with an invalid secret came from your IP address. Correct the secret, and retry after " +
      "the delay in Retry-After.",
    { "Retry-After": String(retryAfterS), Connection: "close" },
  );

export const alreadySendingBatch = refused(
  429,
  "already-sending-batch",
  "You are sending another batch at the moment. Retry after the delay in Retry-After.",
  { "Retry-After": "10" },
);

/** For a valid secret whose partner an operator has put on hold. Its sender keeps the event. */
export const partnerHeld = refusedForNow(503, "partner-held", 60, "Your events are on hold at the moment.");

/** Sent before any work is done for the event. */
export const overloaded = refusedForNow(503, "overloaded", 5, "The service is overloaded.");

/** For a partner whose bodies take more CPU time than its share. */
export const tooMuchToRead = refused(
  503,
  "too-much-to-read",
  "You are sending more data at once than the service can process. Retry the same request after the delay in " +
    "Retry-After, or send smaller events.",
  { "Retry-After": "1" },
);

export const internalError = refused(
  500,
  "internal-error",
  "An internal error occurred. Retry the same request later.",
);
/** For a missing or empty partners file. A 403 would tell partners to stop sending. */
export const partnersUnknown = refusedForNow(503, "partners-unknown", 5, "Secrets cannot be verified at the moment.");
/** The event may have been queued even so, if only Redis' reply was lost. A retry is then a duplicate. */
export const queueUnavailable = refusedForNow(503, "queue-unavailable", 5, "The event could not be stored.");
export const shuttingDown = refusedForNow(503, "shutting-down", 1, "This server is shutting down.");

/** The body of an event without warnings has no member for them. */
function withWarnings(warnings: readonly Warning[]): { warnings?: Warning[] } {
  if (warnings.length === 0) return {};
  return { warnings: warnings.map(({ message, code, propertyPath }) => ({ message, code, propertyPath })) };
}
