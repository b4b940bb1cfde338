import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startOwnPostgres } from "@booking-events/harness/own-postgres";
import { discard } from "@booking-events/harness/postgres-standby";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { migrateAndGrant } from "./migrate.ts";

// Roles are of the whole server, so it is one of its own.
test("rights are given again without waiting for a program that follows the feed", async () => {
  const server = await startOwnPostgres({ dir: mkdtempSync(join(tmpdir(), "booking-events-grants-")) });
  onTestFinished(() => discard(server));
  const client = new pg.Client(server.url);
  client.on("error", () => {});
  await migrateAndGrant(server.url, { passwords: {} });
  await client.connect();
  await client.query("insert into feed_readers (name) values ('copy')");
  await client.query("begin; select from feed_readers, feed_deliveries, feed_handed for update of feed_readers");
  await expect(migrateAndGrant(server.url, { passwords: {} })).resolves.toMatchObject({ migrations: [] });
});
