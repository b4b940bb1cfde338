import type { IncomingMessage } from "node:http";
import { headerValues } from "../app/header-values.ts";

export interface GivenSecret {
  /** Empty if there is none. */
  secret: string;
  /** Why it is refused even if it is valid. Which of several is meant can't be told. */
  fault?: "two-secrets";
}

/** RFC 6750, section 2.1. The case of a scheme does not matter. */
const bearerPattern = /^bearer +(\S+)$/i;

/**
 * Returns the secret of the path, or else of `Authorization: Bearer`. Beside a secret in the path, other schemes and a
 * Bearer without a token are ignored: proxies and libraries add them, and they name no other secret.
 *
 * @param inPath decoded; empty if the path has none
 */
export function secretOf(req: Pick<IncomingMessage, "headers" | "rawHeaders">, inPath = ""): GivenSecret {
  const { authorization } = req.headers;
  if (authorization === undefined) return { secret: inPath };
  const bearer = bearerPattern.exec(authorization)?.[1];
  if (headerValues(req, "authorization").length > 1) return { secret: inPath, fault: "two-secrets" };
  if (bearer === undefined) return { secret: inPath };
  return inPath === "" ? { secret: bearer } : { secret: inPath, fault: "two-secrets" };
}
