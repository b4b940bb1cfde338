import { type ChildProcess, spawn } from "node:child_process";
import { hash, randomUUID } from "node:crypto";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Outcome } from "@booking-events/bookings";
import { waitFor } from "@booking-events/harness";
import { compileCache, fromSource } from "@booking-events/harness/app-process";
import { bundleProgram } from "@booking-events/harness/bundle-program";
import { execute } from "@booking-events/harness/execute";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { appendChanges, bookingKey, type EventToInsert, insertEvents, inTransaction } from "@booking-events/store";
import { afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { spawnOps } from "../../testing/run-ops.ts";

const { pool, url } = useTestDatabase({ maxConnections: 6 });
const main = fromSource(fileURLToPath(new URL("../../main.ts", import.meta.url)));
/** A process from source takes seconds to start on a busy machine. */
const patience = { timeoutMs: 60_000 };
let children: ChildProcess[] = [];
let program: readonly string[];

beforeAll(async () => {
  program = await bundleProgram(main);
});
beforeEach(() => pool.query("truncate bookings, booking_events, booking_changes"));
afterEach(async () => {
  for (const child of children) child.kill("SIGKILL");
  children = [];
});

test("a new event is shown once, whenever it commits and however old its id is", { timeout: 120_000 }, async () => {
  const before = event("before", { ageMs: 1_000 });
  await insert(before);
  const follower = follow("--partner", "acme");
  await follower.untilShown("before");

  const [slow, quick] = [await pool.connect(), await pool.connect()];
  try {
    await slow.query("begin");
    await insertEvents(slow, [event("slow", { ageMs: 20_000, outcome: "duplicate" })]);
    await quick.query("begin");
    await insertEvents(quick, [event("quick", { ageMs: 10_000, outcome: "superseded" })]);
    await quick.query("commit");
    await follower.untilShown("quick");
    await slow.query("commit");
    await follower.untilShown("slow");
  } finally {
    slow.release();
    quick.release();
  }
  await insert(event("other", { partner: "other" }));
  const old = event("waited-for-days", { ageMs: 3 * 86_400_000, outcome: "created" });
  await inTransaction(pool, async (client) => {
    await insertEvents(client, [old]);
    await appendChanges(client, [changeOf(old)]);
  });
  await follower.untilShown("waited-for-days");
  // The row is written again, and the feed has a correction that names an event of the past.
  await pool.query("update booking_events set outcome = 'superseded' where reference = 'quick'");
  await inTransaction(pool, (client) => appendChanges(client, [changeOf(before)]));
  await insert(event("last"));
  await follower.untilShown("last");
  expect(follower.references()).toEqual(["before", "quick", "slow", "waited-for-days", "last"]);
  expect(follower.stderr()).toBe("");
});

test("a table has a header, and the selected events, oldest first", { timeout: 120_000 }, async () => {
  await insert(event("one", { ageMs: 2_000 }), event("two", { ageMs: 1_000 }));
  const follower = follow({ json: false }, "--limit", "1", "--kind", "create");
  await waitFor(() => expect(follower.lines()).toHaveLength(2), patience);
  expect(follower.lines()[0]).toMatch(/^RECEIVED +KIND +OUTCOME +EVENT ID +PARTNER +REFERENCE$/);
  expect(follower.lines()[1]).toMatch(/ two$/);
  await insert(event("three", { outcome: "unchanged" }));
  await waitFor(() => expect(follower.lines()[2]).toMatch(/ three$/), patience);
  expect(follower.lines()[2]?.indexOf("acme")).toBe(follower.lines()[0]?.indexOf("PARTNER"));
});

test("Ctrl-C ends it, and so does the reader of the pipe", { timeout: 120_000 }, async () => {
  const interrupted = follow();
  await insert(event("one"));
  await interrupted.untilShown("one");
  interrupted.child.kill("SIGINT");
  expect(await interrupted.ended).toBe(130);
  expect(interrupted.stderr()).toBe("");

  const piped = follow();
  await piped.untilShown("one");
  piped.child.stdout?.destroy();
  await insert(event("two"));
  expect(await piped.ended).toBe(0);
  expect(piped.stderr()).toBe("");
});

test("it goes on after an outage of PostgreSQL, and shows what was applied meanwhile", {
  timeout: 120_000,
}, async () => {
  const follower = follow();
  await insert(event("one"));
  await follower.untilShown("one");
  const database = new URL(url).pathname.slice(1);
  const admin = Object.assign(new URL(url), { pathname: "/postgres" }).href;
  // While it is used, the pool does not close it, and no other can be opened.
  const client = await pool.connect();
  try {
    await execute(admin, `alter database ${database} allow_connections false`);
    await client.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'booking-events-ops' and datname = $1",
      [database],
    );
    await waitFor(() => expect(follower.stderr()).toMatch(/Trying again until Ctrl-C\.\n$/), patience);
    await insertEvents(client, [event("two")]);
  } finally {
    await execute(admin, `alter database ${database} allow_connections true`);
    client.release();
  }
  await follower.untilShown("two");
  expect(follower.stderr()).toMatch(/^PostgreSQL .*Trying again.*\nPostgreSQL can be reached again\.\n$/);
  expect(follower.references()).toEqual(["one", "two"]);
});

test("--follow goes with neither --until nor --before", { timeout: 120_000 }, async () => {
  const refused = await spawnOps(["events", "list", "--follow", "--until", "1h"], { DATABASE_URL: url });
  expect(refused).toMatchObject({ exitCode: 2, stdout: "", stderr: expect.stringContaining("Leave out --until") });
});

test("a search that takes too long says to add --since", { timeout: 120_000 }, async () => {
  const client = await pool.connect();
  try {
    await client.query("begin; lock table booking_events");
    const ran = spawnOps(["events", "list", "--outcome", "deleted"], { DATABASE_URL: url });
    // What the statement time-out does after 30 s.
    await waitFor(async () => {
      const { rows } = await pool.query(
        `select pg_cancel_backend(pid) from pg_stat_activity
         where application_name = 'booking-events-ops' and datname = current_database() and wait_event_type = 'Lock'`,
      );
      expect(rows).toHaveLength(1);
    }, patience);
    expect(await ran).toMatchObject({ exitCode: 1, stdout: "", stderr: expect.stringMatching(/^.*Add --since.*\n$/) });
  } finally {
    await client.query("rollback");
    client.release();
  }
});

function event(reference: string, { ageMs = 0, outcome = "updated" as Outcome, partner = "acme" } = {}): EventToInsert {
  const receivedAtMs = Date.now() - ageMs;
  const hex = receivedAtMs.toString(16).padStart(12, "0");
  return {
    id: `${hex.slice(0, 8)}-${hex.slice(8)}-7${randomUUID().slice(15)}`,
    partner,
    kind: "create",
    referenceKind: "trip",
    reference,
    bookingKey: bookingKey(partner, "trip", reference),
    sequence: receivedAtMs * 1_000,
    idempotencyKey: null,
    payload: "{}",
    contentDigest: hash("sha256", reference, "hex"),
    outcome,
    duplicateOf: null,
    warnings: [],
    after: null,
    receivedAt: new Date(receivedAtMs),
  };
}

async function insert(...events: EventToInsert[]): Promise<void> {
  await insertEvents(pool, events);
}

function changeOf({ id, partner, referenceKind, reference, sequence }: EventToInsert) {
  const booking = { bookingId: randomUUID(), partner, referenceKind, reference, revision: 1 };
  return { ...booking, change: "created" as const, eventId: id, sequence, previousEventId: null };
}

function follow(...[first, ...rest]: [({ json: boolean } | string)?, ...string[]]) {
  const json = typeof first !== "object" || first.json;
  const args = [...(typeof first === "string" ? [first] : []), ...rest, ...(json ? ["--json"] : [])];
  const child = spawn(process.execPath, [...program, "events", "list", "--follow", ...args], {
    env: { ...compileCache, DATABASE_URL: url },
    stdio: ["ignore", "pipe", "pipe"],
  });
  children.push(child);
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const lines = () => stdout.split("\n").slice(0, -1);
  const references = (): string[] => lines().map((line) => JSON.parse(line).reference);
  return {
    child,
    lines,
    references,
    stderr: () => stderr,
    untilShown: (reference: string) => waitFor(() => expect(references()).toContain(reference), patience),
    ended: once(child, "close").then(([code]) => code),
  };
}
