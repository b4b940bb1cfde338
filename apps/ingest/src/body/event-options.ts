import type { IncomingMessage } from "node:http";
import { headerValues, Refusal } from "@booking-events/http";
import { answers, type FieldWarning, isIdempotencyKey, requestWarnings } from "@booking-events/schema";

export interface EventOptions {
  /** Null: the partner sent none. */
  idempotencyKey: string | null;
  isDryRun: boolean;
  warnings: readonly FieldWarning[];
}

/**
 * Reads the options that a partner can set in headers.
 *
 * @throws Refusal for an invalid value. Ignoring it would do what the partner wanted to prevent
 */
export function readEventOptions(req: Pick<IncomingMessage, "headers" | "rawHeaders">): EventOptions {
  const isDryRun = readDryRun(req.headers["x-dry-run"]?.toString());
  const named = readKey(req, "idempotency-key");
  // Standard Webhooks' name of the same header. Proxies and libraries may add it by themselves.
  const { key, isEmpty } = named.key === null ? readKey(req, "webhook-id") : named;
  return {
    idempotencyKey: key,
    isDryRun,
    warnings: named.isEmpty || isEmpty ? [requestWarnings["empty-key"]] : noWarnings,
  };
}

const noWarnings: readonly FieldWarning[] = [];

function readKey(req: Pick<IncomingMessage, "headers" | "rawHeaders">, name: string) {
  const sent = req.headers[name]?.toString();
  if (sent === undefined) return { key: null, isEmpty: false };
  // Node joins the values of a repeated header with ", ", which a key may contain, too.
  const keys = (sent.includes(", ") ? headerValues(req, name) : [sent]).map(unquote);
  const [key = null, ...others] = keys.filter((each) => each !== "");
  if (others.some((other) => other !== key)) throw new Refusal(answers.differentIdempotencyKeys);
  if (key !== null && !isIdempotencyKey(key)) throw new Refusal(answers.invalidIdempotencyKey);
  return { key, isEmpty: keys.includes("") };
}

/** The IETF's draft writes keys in quotes. */
function unquote(value: string): string {
  return value.length > 1 && value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value;
}

export function readDryRun(value = ""): boolean {
  switch (value.toLowerCase()) {
    case "true":
    case "1":
    case "yes":
      return true;
    case "":
    case "false":
    case "0":
    case "no":
      return false;
    default:
      throw new Refusal(answers.invalidDryRun);
  }
}
