import { randomBytes } from "node:crypto";
import { renameSync, writeFileSync } from "node:fs";
import type { Partner } from "@booking-events/partners";
import { partner } from "./partners.ts";

/** Higher than any load, for tests and measurements that are not about limits. */
export const noLimit: Partner["rateLimit"] = { perSecond: 1_000_000, burst: 1_000_000 };

/** Replaces the file in one step, as ops does. An ingest that reads it meanwhile sees the old file or the new one. */
export function writePartnersFile(path: string, partners: readonly Partner[]): void {
  writeFileSync(`${path}.new`, JSON.stringify({ partners }), { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

/**
 * Writes partners with new random secrets.
 *
 * @param limits by partner
 * @param others are written as they are
 * @returns the secrets by partner
 */
export function writeNewPartners(
  path: string,
  limits: Record<string, Partner["rateLimit"]>,
  others: readonly Partner[] = [],
): Record<string, string> {
  const secretOf = Object.fromEntries(Object.keys(limits).map((id) => [id, randomBytes(32).toString("base64url")]));
  const partners = Object.entries(limits).map(([id, rateLimit]) =>
    partner(id, { [secretOf[id] ?? ""]: null }, { rateLimit }),
  );
  writePartnersFile(path, [...partners, ...others]);
  return secretOf;
}
