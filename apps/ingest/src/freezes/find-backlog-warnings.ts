import { readFileSync } from "node:fs";
import { freezeLimits } from "./watch-freezes.ts";

/** Linux cuts the backlog of a socket to this. */
const limitFile = "/proc/sys/net/core/somaxconn";

/**
 * Beyond the backlog, a client tries to connect again after seconds, with data that it sent long before, and nothing
 * shows that it has waited. Linux lets too few connections wait before 5.4, and where somebody has lowered its limit.
 *
 * @returns sentences for an operator
 */
export function findBacklogWarnings(file: string = limitFile): string[] {
  const limit = readLimit(file);
  if (limit === undefined || limit >= freezeLimits.backlog) return [];
  return [
    `Linux lets only ${limit} connections wait to be accepted, so events that waited longer may look new. ` +
      "Set: sysctl net.core.somaxconn=4096. Then restart ingest.",
  ];
}

/** @returns undefined: this is another system, or it does not tell */
function readLimit(file: string): number | undefined {
  try {
    return Number(readFileSync(file, "utf8"));
  } catch {
    return undefined;
  }
}
