/** For tests that use the real Redis and PostgreSQL: the files named *.services.test.ts, and those in e2e. */
import { randomBytes } from "node:crypto";
import pg from "pg";
import { inject } from "vitest";
import type {} from "./shared-services.ts"; // Declares what is provided.

export { freePort } from "@booking-events/scripts/ports";
export { waitFor } from "./wait-for.ts";

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
