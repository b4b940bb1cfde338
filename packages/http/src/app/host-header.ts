import type { IncomingMessage } from "node:http";
import { type Answer, answers } from "@booking-events/schema";
import { headerValues } from "./header-values.ts";

/**
 * Returns the answer to a request with an invalid Host header (RFC 9112, section 3.2), or undefined if it is valid.
 * Node checks only that the header exists, and answers without a body. With two Host headers, a proxy may have used the
 * other one.
 */
export function findHostFault(req: IncomingMessage): Answer | undefined {
  const hosts = headerValues(req, "host").length;
  if (hosts > 1) return answers.repeatedHost;
  return hosts === 0 && req.httpVersion === "1.1" ? answers.malformedHttp : undefined;
}
