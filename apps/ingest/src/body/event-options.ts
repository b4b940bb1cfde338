import type { IncomingHttpHeaders } from "node:http";
import { isIdempotencyKey } from "@booking-events/schema";
import { differentKeys, invalidDryRun, invalidIdempotencyKey, Refusal } from "../http/answers.ts";

/** What a partner may ask for in headers. */
export interface EventOptions {
  /** null: the partner sent none. */
  idempotencyKey: string | null;
  isDryRun: boolean;
}

/** @throws Refusal for a value that we can't honour: ignoring it would do what the partner meant to prevent. */
export function readEventOptions(headers: IncomingHttpHeaders): EventOptions {
  return { idempotencyKey: readIdempotencyKey(headers), isDryRun: readDryRun(headers) };
}

/** Standard Webhooks has its own name for the same thing. */
const keyHeaders = ["idempotency-key", "webhook-id"] as const;

function readIdempotencyKey(headers: IncomingHttpHeaders): string | null {
  // Node joins the values of one that was sent twice by ", ", which no key may have.
  const keys = keyHeaders.map((name) => headers[name]?.toString()).filter((key) => key !== undefined);
  if (!keys.every(isIdempotencyKey)) throw new Refusal(invalidIdempotencyKey);
  const [key = null, other = key] = keys;
  if (other !== key) throw new Refusal(differentKeys);
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
      throw new Refusal(invalidDryRun);
  }
}
