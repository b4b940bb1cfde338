import type { IncomingMessage } from "node:http";
import { answers, lookupAnswers } from "@booking-events/schema";
import { Refusal } from "../answers/refusal.ts";

/** @throws Refusal unless the body is lines of JSON in UTF-8, uncompressed */
export function requireNdjson({ headers }: Pick<IncomingMessage, "headers">): void {
  const [type = "", ...parameters] = (headers["content-type"] ?? "").toLowerCase().split(";");
  const charset = parameters.find((parameter) => parameter.trim().startsWith("charset="));
  if (type.trim() !== "application/x-ndjson" || (charset !== undefined && !/=\s*"?utf-?8"?\s*$/.test(charset)))
    throw new Refusal(lookupAnswers.unsupportedType);
  if ((headers["content-encoding"] ?? "identity").toLowerCase() !== "identity")
    throw new Refusal(answers.unsupportedEncoding);
}
