import { nameVariable, type RedisServers } from "@booking-events/runtime";
import type { Redis } from "ioredis";

/**
 * Remembers why a connection broke until it is ready again.
 *
 * @returns a function that describes the outage in a sentence for an operator. It has the error's code only, because
 *   messages may quote a command or a URL
 */
export function watchOutage(redis: Redis, servers: RedisServers): () => string {
  let code: string | null = null;
  redis.on("error", (error) => {
    code = codeOf(error);
  });
  redis.on("ready", () => {
    code = null;
  });
  const remedy = `Check that it runs and that ${nameVariable(servers)} is right.`;
  return () => `Redis does not answer${code === null ? "" : ` (${code})`}. ${remedy}`;
}

function codeOf(error: Error & { code?: unknown }): string | null {
  if (typeof error.code === "string") return error.code;
  // Redis' own errors begin with a code, such as WRONGPASS.
  if (error.name === "ReplyError") return /^[A-Z]+(?= )/.exec(error.message)?.[0] ?? null;
  return null;
}
