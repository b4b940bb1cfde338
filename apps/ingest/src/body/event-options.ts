import type { IncomingHttpHeaders } from "node:http";
import { Refusal } from "@booking-events/http";
import { answers, isIdempotencyKey } from "@booking-events/schema";

/**
 * Reads the options that a partner can set in headers.
 *
 * @throws Refusal for an invalid value. Ignoring it would do what the partner wanted to prevent
 */
export function readEventOptions(headers: IncomingHttpHeaders) {
  return { idempotencyKey: readIdempotencyKey(headers), isDryRun: readDryRun(headers) };
}

/** `webhook-id` is the name that Standard Webhooks uses for the same header. */
const keyHeaders = ["idempotency-key", "webhook-id"] as const;

/** @returns null if the partner sent none */
function readIdempotencyKey(headers: IncomingHttpHeaders): string | null {
  // Node joins the values of a repeated header with ", ", which no valid key contains.
  const keys = keyHeaders.map((name) => headers[name]?.toString()).filter((key) => key !== undefined);
  if (!keys.every(isIdempotencyKey)) throw new Refusal(answers.invalidIdempotencyKey);
  const [key = null, other = key] = keys;
  if (other !== key) throw new Refusal(answers.differentIdempotencyKeys);
  return key;
}

function readDryRun(headers: IncomingHttpHeaders): boolean {
  switch (headers["x-dry-run"]?.toString().toLowerCase()) {
    case "true":
      return true;
    case undefined:
    case "false":
      return false;
    default:
      throw new Refusal(answers.invalidDryRun);
  }
}
