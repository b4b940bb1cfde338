/** For tests that use the real Redis and PostgreSQL: the files named *.services.test.ts, and those in e2e. */
import { randomBytes } from "node:crypto";
import { provided } from "./provided.ts";

export { freePort } from "@booking-events/scripts/ports";
export { waitFor } from "./wait-for.ts";

/** The URL of the Redis that all tests share. Keep apart what is yours by a {@link uniquePrefix}. */
export function redisUrl(): string {
  return provided("redisUrl");
}

/** A name for a test's own keys or queue. In braces, so that Redis Cluster would keep the keys in one slot. */
export function uniquePrefix(): string {
  return `{test-${randomBytes(8).toString("hex")}}`;
}
