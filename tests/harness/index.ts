/** For tests that use the real Redis and PostgreSQL: the files named *.services.test.ts, and those in e2e. */
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { inject } from "vitest";
import type {} from "./shared-services.ts"; // Declares what is provided.

export { freePort } from "@booking-events/scripts/ports";

/** The URL of the Redis that all tests share. Keep apart what is yours by a {@link uniquePrefix}. */
export function redisUrl(): string {
  return provided("redisUrl");
}

/** A name for a test's own keys or queue. In braces, so that Redis Cluster would keep the keys in one slot. */
export function uniquePrefix(): string {
  return `{test-${uniqueName()}}`;
}

/** A database of the test's own with all migrations done, cloned in a few milliseconds. */
export async function createTestDatabase(): Promise<{ url: string; drop: () => Promise<void> }> {
  const name = `test_${uniqueName()}`;
  const adminUrl = provided("postgresUrl");
  await execute(adminUrl, `create database ${name} template ${provided("templateDatabase")}`);
  const url = new URL(adminUrl);
  url.pathname = `/${name}`;
  return {
    url: url.href,
    // By force: a test that failed may have left connections open.
    drop: () => execute(adminUrl, `drop database if exists ${name} with (force)`),
  };
}

/**
 * Waits until a condition holds: until it neither throws nor is false. Tests wait for conditions, never for time.
 *
 * @returns what the condition resolved to at last
 * @throws when the time is up, with the condition's last failure
 */
export async function waitFor<Result>(
  condition: () => Result | Promise<Result>,
  { timeoutMs = 10_000, intervalMs = 20 }: { timeoutMs?: number; intervalMs?: number } = {},
): Promise<WaitedFor<Result>> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    let failure: unknown = "it stayed false";
    try {
      const result = await condition();
      if (result !== false) return result as WaitedFor<Result>;
    } catch (error) {
      failure = error;
    }
    if (Date.now() >= deadline) {
      const reason = failure instanceof Error ? failure.message : String(failure);
      throw new Error(`The condition did not come true within ${timeoutMs} ms: ${reason}`, { cause: failure });
    }
    await sleep(intervalMs);
  }
}

/** What remains of a condition's results when it holds: a mere `true` tells nothing more. */
type WaitedFor<Result> = Result extends false ? never : Result extends true ? undefined : Result;

function provided(key: "redisUrl" | "postgresUrl" | "templateDatabase"): string {
  const value = inject(key) as string | undefined;
  if (value === undefined) throw new Error("No services here: a test that needs them is named *.services.test.ts");
  return value;
}

function uniqueName(): string {
  return randomBytes(8).toString("hex");
}

async function execute(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}
