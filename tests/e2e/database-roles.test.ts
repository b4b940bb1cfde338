import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { waitFor } from "@booking-events/harness";
import { runOps } from "@booking-events/ops/testing/run-ops";
import { createPool, insertSubscription, migrate } from "@booking-events/store";
import { createSigningKey } from "@booking-events/subscribers";
import { beforeAll, expect, test } from "vitest";
import { postAccepted } from "./post-event.ts";
import { startSubscriber } from "./start-subscriber.ts";
import { useOwnServices } from "./surroundings.ts";

/** As in docker-compose.yml and by `npm start`: an administrator owns the tables, and migrates before all others. */

const secret = "a-secret-of-the-role-tests-0123456789";
const own = useOwnServices(secret);
const processes = ["worker", "lookup", "ops", "webhooks", "console"] as const;
const passwordOf = (user: string, version = 1) => `${user}'s "pass"\\word ${version} ü €/#?@`;

/** Grants as the administrator, with the passwords of a version. */
function grant(version?: number) {
  const users = version === undefined ? [] : [...processes, "exporter"];
  const passwords = users.map((user) => [`${user.toUpperCase()}_DATABASE_PASSWORD`, passwordOf(user, version)]);
  const environment = { ...own.environment, ...Object.fromEntries(passwords) };
  return runOps(["migrate", "--grant"], { environment });
}

/** For a process of ours. */
function environmentOf(user: string, version?: number): Record<string, string> {
  const url = Object.assign(new URL(own.postgres.url), { username: `booking_events_${user}`, password: "" });
  return { DATABASE_URL: url.href, DATABASE_PASSWORD: passwordOf(user, version) };
}

async function queryAs(user: string, text: string, version?: number): Promise<unknown[]> {
  const { DATABASE_URL = "", DATABASE_PASSWORD = "" } = environmentOf(user, version);
  const databaseUrl = Object.assign(new URL(DATABASE_URL), { password: encodeURIComponent(DATABASE_PASSWORD) }).href;
  const pool = createPool({ databaseUrl, applicationName: "test", maxConnections: 1, onError: () => {} });
  try {
    return (await pool.query(text)).rows;
  } finally {
    await pool.end();
  }
}

beforeAll(() => migrate(own.postgres.url));

test("roles are created in a database that has tables, get their passwords and rights, and twice is harmless", async () => {
  expect(await grant(1)).toEqual({
    exitCode: 0,
    stderr: "",
    stdout:
      "Nothing to apply: the schema is up to date.\nGranted what it needs to each of booking_events_worker, " +
      "booking_events_lookup, booking_events_ops, booking_events_reader, booking_events_webhooks, booking_events_console, " +
      "booking_events_exporter.\n",
  });
  const readRights = async () =>
    (
      await own.pool.query(
        `select relname, relacl::text, (select array_agg(attacl::text order by attnum) from pg_attribute where attrelid = pg_class.oid)
         from pg_class where relnamespace = 'public'::regnamespace order by relname`,
      )
    ).rows;
  const rights = await readRights();
  for (const version of [1, 2]) {
    expect(await grant(version)).toMatchObject({ exitCode: 0, stderr: "" });
    expect(await readRights()).toEqual(rights);
    for (const user of processes) {
      const me = "select current_user as name, rolsuper from pg_roles where rolname = current_user";
      expect(await queryAs(user, me, version)).toEqual([{ name: `booking_events_${user}`, rolsuper: false }]);
    }
  }
  await expect(queryAs("lookup", "select 1", 1)).rejects.toMatchObject({ code: "28P01" });
  // Without passwords, each role keeps its own.
  expect(await grant()).toMatchObject({ exitCode: 0, stderr: "" });
  const [settings] = await queryAs("exporter", "select current_setting('data_directory') <> '' as seen", 2);
  expect(settings).toEqual({ seen: true });
  await expect(queryAs("exporter", "select * from bookings", 2)).rejects.toMatchObject({ code: "42501" });
});

test("each process connects as its own role only, and events go their whole way", async () => {
  await grant(1);
  const ingest = await own.start("ingest");
  await own.start("worker", { environment: environmentOf("worker") });
  await own.start("lookup", { environment: environmentOf("lookup") });
  const subscriber = await startSubscriber();
  await subscribe(subscriber.url);
  let failures = 0;
  // What it keeps of a post that failed is in a table of its own.
  subscriber.answer = () => (failures++ === 0 ? 500 : 200);
  await own.start("webhooks", { environment: { ...environmentOf("webhooks"), WEBHOOKS_ALLOW_PRIVATE: "true" } });
  const eventId = await postAccepted(ingest, { secret, reference: "A" });
  await waitFor(async () => {
    const environment = { ...own.environment, ...environmentOf("ops") };
    const { stdout } = await runOps(["events", "list", "--json"], { environment });
    expect(JSON.parse(stdout)).toMatchObject([{ id: eventId, outcome: "created" }]);
  });
  await waitFor(() => expect(subscriber.taken).toMatchObject([{ event: { type: "booking.created", subject: "A" } }]));
  await subscriber.close();
  const { rows } = await own.pool.query(
    `select distinct application_name, usename::text, usesuper from pg_stat_activity join pg_user using (usename)
     where application_name in ('booking-events-worker', 'booking-events-lookup', 'booking-events-deliver') order by 1`,
  );
  expect(rows).toEqual([
    { application_name: "booking-events-deliver", usename: "booking_events_webhooks", usesuper: false },
    { application_name: "booking-events-lookup", usename: "booking_events_lookup", usesuper: false },
    { application_name: "booking-events-worker", usename: "booking_events_worker", usesuper: false },
  ]);
});

/** With a filter, of which webhooks remembers what it let in. */
function subscribe(url: string): Promise<unknown> {
  return insertSubscription(own.pool, {
    ...{ name: "hotel", url, mode: "latest", payload: "full", signature: "hmac", signingKey: createSigningKey("hmac") },
    ...{ partners: ["acme"], changes: ["created"], countries: null, arrivalFromDays: null, arrivalToDays: null },
    ...{ tokenSha256: null, createdBy: "test" },
  });
}

test("PostgreSQL gets no password, so none is in its log", async () => {
  await own.pool.query("alter database booking_events set log_statement = 'all'");
  expect(await grant(1)).toMatchObject({ exitCode: 0 });
  await own.pool.query("alter database booking_events reset log_statement");
  const log = await readFile(join(own.folder, "postgres/postgres.log"), "utf8");
  expect(log).toContain("alter role booking_events_worker login password");
  expect(log).not.toContain("word 1");
});
