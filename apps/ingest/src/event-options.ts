import type { IncomingHttpHeaders } from "node:http";
import { isIdempotencyKey } from "@booking-events/schema";
import { invalidDryRun, invalidIdempotencyKey, Refusal } from "./answers.ts";

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

/** Standard Webhooks has its own name for the same thing; if both are there, the general one counts. */
function readIdempotencyKey(headers: IncomingHttpHeaders): string | null {
  const key = (headers["idempotency-key"] ?? headers["webhook-id"])?.toString() ?? null;
  if (key !== null && !isIdempotencyKey(key)) throw new Refusal(invalidIdempotencyKey);
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
