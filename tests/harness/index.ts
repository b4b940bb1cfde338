/** For tests that use the real Redis and PostgreSQL: the files named *.services.test.ts, and those in e2e. */
import { randomBytes } from "node:crypto";
import { provided } from "./provided.ts";

export { freePort } from "@booking-events/scripts/ports";
export { waitFor } from "./wait-for.ts";

/** The URL of the Redis that all tests share. Use a {@link uniquePrefix} for your own keys. */
export function redisUrl(): string {
  return provided("redisUrl");
}

/** A name for a test's own keys or queue. The braces keep the keys in one slot of a Redis Cluster. */
export function uniquePrefix(): string {
  return `{test-${randomBytes(8).toString("hex")}}`;
}
