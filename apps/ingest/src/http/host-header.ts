import type { IncomingMessage } from "node:http";
import { headerValues } from "../body/header-values.ts";
import { type Answer, malformedHttp, repeatedHost } from "./answers.ts";

/**
 * What is wrong with a request's Host (RFC 9112, section 3.2). Node would check only that there is one, and answer
 * without a body. Of two, a proxy may have gone by the other one.
 */
export function findHostFault(req: IncomingMessage): Answer | undefined {
  const hosts = headerValues(req, "host").length;
  if (hosts > 1) return repeatedHost;
  return hosts === 0 && req.httpVersion === "1.1" ? malformedHttp : undefined;
}
