import { redisUrl, uniquePrefix, waitFor } from "@booking-events/harness";
import { untilBlocked, useTestDatabase } from "@booking-events/harness/test-database";
import { createProducer, type Producer } from "@booking-events/queue";
import { bookingKey, insertEvents, resolveDeadLetter, writeDeadLetter } from "@booking-events/store";
import { beforeEach, describe, expect, test } from "vitest";
import { type Ran, runOps, spawnUnreadOps } from "../testing/run-ops.ts";

const { pool, url } = useTestDatabase({ maxConnections: 2 });
let environment: Record<string, string>;

beforeEach(async () => {
  await pool.query("truncate dead_letters, booking_events");
  environment = { DATABASE_URL: url, REDIS_URL: redisUrl(), QUEUE_PREFIX: uniquePrefix() };
});

const eventId = "0199a000-0000-7000-8000-000000000001";
const envelope = {
  ...{ version: 1, eventId, kind: "create", partner: "acme", sequence: 1, receivedAt: "2026-11-20T00:00:00.000Z" },
  ...{ idempotencyKey: null, payload: { consumerTripPartnerExternalReference: "TRIP-1" } },
};

type More = { eventId?: string; errorCode?: string; partner?: string; envelope?: Buffer };

async function insertLetter(data: unknown, more: More = {}) {
  await writeDeadLetter(pool, {
    ...{ eventId, partner: "acme", kind: "create", referenceKind: "trip", reference: "TRIP-1", sequence: 1 },
    ...{
      errorCode: "TypeError",
      error: "The worker failed.",
      attempts: 15,
      envelope: Buffer.from(JSON.stringify(data)),
    },
    ...more,
  });
}

async function insertApplied() {
  await insertEvents(pool, [
    {
      ...{ id: eventId, partner: "acme", kind: "create", reference: "TRIP-1", sequence: 1, outcome: "created" },
      ...{ bookingKey: bookingKey("acme", "trip", "TRIP-1"), referenceKind: "trip", contentDigest: "00".repeat(32) },
      ...{ payload: "{}", warnings: [] },
      ...{ idempotencyKey: null, duplicateOf: null, after: null, receivedAt: new Date(0) },
    },
  ]);
}

const show = (...more: string[]) => runOps(["events", "show", eventId, ...more], { environment });

function ops(args: string[], terminal: { stdin?: string; isTerminal?: boolean } = {}): Promise<Ran> {
  return runOps(["dead-letters", ...args], { environment, ...terminal });
}

/** As ingest sees it. */
async function watchQueue(): Promise<Producer> {
  const { REDIS_URL: redisUrl = "", QUEUE_PREFIX: prefix = "" } = environment;
  const producer = createProducer({ redisServers: redisUrl, prefix, onError: () => {} });
  await waitFor(async () => expect(await producer.findProblems()).toEqual([]));
  return producer;
}

async function isMarked(): Promise<boolean> {
  const { rows } = await pool.query<{ marked: boolean }>("select replayed_at is not null as marked from dead_letters");
  return rows[0]?.marked === true;
}

test("of more letters than memory has room for, the oldest are taken, and it is said so", async () => {
  await insertLetter(envelope);
  await pool.query(
    `insert into dead_letters (event_id, partner, error_code, error, attempts, envelope, failed_at)
     select gen_random_uuid(), 'acme', 'TypeError', '', 15, '', now() - make_interval(secs => number)
     from generate_series(1, 50000) as number`,
  );
  const { stderr } = await ops(["replay", "--all"], { stdin: "n\n", isTerminal: true });
  expect(stderr).toContain("Only the oldest 50000 are taken.");
  expect(stderr).toContain("Replay 50,000 dead letters (50000 × TypeError)");
});

describe("on a terminal", () => {
  test.each(["n", "", "what?"])("the answer %j changes nothing", async (answer) => {
    await insertLetter(envelope);
    const { exitCode, stderr } = await ops(["replay", "--all"], { stdin: `${answer}\n`, isTerminal: true });
    expect(stderr).toBe("Replay 1 dead letter (1 × TypeError)? [y/N] Nothing was done.\n");
    expect(exitCode).toBe(1);
    expect(await isMarked()).toBe(false);
  });

  test("Ctrl-C, Ctrl-D and the end of the input change nothing", async () => {
    await insertLetter(envelope);
    const { exitCode, stderr } = await ops(["replay", "--all"], { stdin: "", isTerminal: true });
    expect(stderr).toBe("Replay 1 dead letter (1 × TypeError)? [y/N] \nNothing was done.\n");
    expect(exitCode).toBe(1);
    expect(await isMarked()).toBe(false);
  });

  test("the answer y replays", async () => {
    await insertLetter(envelope);
    const { exitCode, stdout } = await ops(["replay", "--all", "--no-wait"], { stdin: "y\n", isTerminal: true });
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(new RegExp(`${eventId} +waiting`));
    expect(await isMarked()).toBe(true);
  });
});

describe("replay", () => {
  test("--code and --partner select", async () => {
    await insertLetter(envelope);
    await insertLetter(envelope, { eventId: eventId.replace(/1$/, "2"), errorCode: "STALLED" });
    await insertLetter(envelope, { eventId: eventId.replace(/1$/, "3"), errorCode: "STALLED", partner: "globe" });
    const { stderr } = await ops(["replay", "--all", "--code", "STALLED", "--partner", "globe"]);
    expect(stderr).toMatch(/^Replay 1 dead letter \(1 × STALLED\)\?/);
  });

  test("an event that no worker can read is not replayed, and the reason is printed", async () => {
    await insertLetter({ ...envelope, version: 99 });
    const { exitCode, stdout, stderr } = await ops(["replay", eventId, "--yes"]);
    expect(exitCode).toBe(1);
    expect(stdout).toMatch(/invalid +.*version/);
    expect(stderr).toContain("1 of 1 could not be applied");
    expect(await isMarked()).toBe(false);
  });

  test("neither is an event that is not JSON, which is shown as text", async () => {
    await insertLetter(null, { envelope: Buffer.from('{"version":1,') });
    expect((await ops(["replay", eventId, "--yes"])).stdout).toMatch(/invalid +.*JSON/);
    expect((await show("--payload")).stdout).toContain('"{\\"version\\":1,"');
  });

  test("an event that was applied meanwhile is not queued, and its letter says so", async () => {
    await insertLetter(envelope);
    await insertApplied();
    const { exitCode, stdout } = await ops(["replay", eventId, "--yes", "--by", "Ada", "--json"]);
    expect(exitCode).toBe(0);
    expect(JSON.parse(stdout)).toEqual([{ eventId, result: "resolved", detail: "applied meanwhile: created" }]);
    expect(await isMarked()).toBe(false);
    expect((await show()).stdout).toMatch(/: applied meanwhile: created\n[\s\S]*Resolved by {2}Ada\n/);
  });

  test("events are queued, though nobody reads what it prints", { timeout: 60_000 }, async () => {
    await insertLetter(envelope);
    expect(await spawnUnreadOps(["dead-letters", "replay", "--all", "--yes", "--no-wait"], environment)).toBe(0);
    expect(await isMarked()).toBe(true);
    const queue = await watchQueue();
    try {
      expect(await queue.measureLoad()).toMatchObject({ backlog: 1 });
    } finally {
      await queue.close();
    }
  });

  test("an event is queued only after its letter was marked, so one closed in between is not queued", async () => {
    await insertLetter(envelope);
    const holder = await pool.connect();
    const queue = await watchQueue();
    try {
      await holder.query("begin");
      await holder.query("select from dead_letters for update");
      const replaying = ops(["replay", eventId, "--yes", "--json"]);
      // The command waits to mark the letter, which another operator is about to close.
      await untilBlocked(pool, 1);
      await holder.query("update dead_letters set resolved_at = now(), resolved_by = 'Ada', resolution = 'discarded'");
      await holder.query("commit");
      const { stdout } = await replaying;
      expect(JSON.parse(stdout)).toEqual([{ eventId, result: "resolved", detail: "closed meanwhile" }]);
      expect(await queue.measureLoad()).toMatchObject({ backlog: 0 });
    } finally {
      holder.release();
      await queue.close();
    }
  });

  test("a closed letter is not in the question", async () => {
    await insertLetter(envelope);
    await ops(["discard", eventId, "--reason", "a test", "--yes"]);
    const { exitCode, stdout, stderr } = await ops(["replay", eventId]);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
    expect(stdout).toMatch(/resolved +discarded: a test\n$/);
  });

  test("while Redis is unavailable, nothing is changed", async () => {
    await insertLetter(envelope);
    environment["REDIS_URL"] = "redis://127.0.0.1:1";
    const { exitCode, stderr } = await ops(["replay", eventId, "--yes"]);
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/Redis does not answer \(ECONNREFUSED\)\. .* Nothing was replayed\./);
    expect(await isMarked()).toBe(false);
  });

  test.each([
    ["neither ids nor --all", []],
    ["ids and --all", [eventId, "--all"]],
    ["--code without --all", [eventId, "--code", "STALLED"]],
    ["something else than an id", ["TRIP-1"]],
  ])("%s is wrong usage", async (_, args) => {
    expect((await ops(["replay", ...args, "--yes"])).exitCode).toBe(2);
  });

  test("of an event without a dead letter fails before anything is changed", async () => {
    await insertLetter(envelope);
    const unknown = eventId.replace(/1$/, "9");
    const { exitCode, stderr } = await ops(["replay", eventId, unknown, "--yes"]);
    expect(exitCode).toBe(1);
    expect(stderr).toContain(`Event ${unknown} has no dead letter.`);
    expect(await isMarked()).toBe(false);
  });
});

test.each([
  ["a reason", ["discard", eventId]],
  ["a reason that is not blank", ["discard", eventId, "--reason", " "]],
  ["a name that is not blank", ["discard", eventId, "--reason", "a test", "--by", ""]],
])("discard needs %s", async (_, args) => {
  await insertLetter(envelope);
  expect((await ops([...args, "--yes"])).exitCode).toBe(2);
  expect((await ops(["list", "--json"])).stdout).toContain(eventId);
});

test("the queued event is shown only on request, and can't control the terminal", async () => {
  await insertLetter({ ...envelope, payload: { consumerGivenName: "Canary\u009b2J\u202e" } });
  for (const command of [show, (...more: string[]) => ops(["show", eventId, ...more])]) {
    expect((await command()).stdout).not.toContain("Canary");
    for (const more of [[], ["--json"]]) {
      const { stdout } = await command("--payload", ...more);
      expect(stdout).toContain('"Canary\\u009b2J\\u202e"');
    }
  }
  expect(JSON.parse((await ops(["show", eventId, "--json"])).stdout)).toMatchObject({ eventId, partner: "acme" });
  expect((await ops(["show", eventId.replace(/1$/, "2")])).stderr).toMatch(/has no dead letter\. .* ops events show/);
});

test("a list says if there are more", async () => {
  await insertLetter(envelope);
  await insertLetter(envelope, { eventId: eventId.replace(/1$/, "2") });
  expect((await ops(["list", "--limit", "2"])).stderr).toBe("");
  expect((await ops(["list", "--limit", "1"])).stderr).toBe("There are more than 1. Show them with --limit.\n");
});

test("list --resolved shows the state of each", async () => {
  await insertLetter(envelope);
  await insertLetter(envelope, { eventId: eventId.replace(/1$/, "2") });
  await ops(["discard", eventId, "--reason", "a test", "--yes"]);
  const { stdout } = await ops(["list", "--resolved"]);
  expect(stdout).toMatch(/discarded: a test\n[^\n]* open\n$/);
});

test("an event that was applied meanwhile can't be discarded, and its letter is closed", async () => {
  await insertLetter(envelope);
  await insertLetter(envelope, { eventId: eventId.replace(/1$/, "2") });
  await insertApplied();
  const other = eventId.replace(/1$/, "2");
  const { exitCode, stdout, stderr } = await ops(["discard", eventId, other, "--reason", "a test", "--yes"]);
  expect(stdout).toContain(`${eventId} has been applied (created), so it can't be discarded.`);
  expect(stdout).toContain(`Discarded ${other}`);
  expect(stderr).toContain("1 of 2 could not be discarded");
  expect(exitCode).toBe(1);
  const { rows } = await pool.query("select resolution from dead_letters order by event_id");
  expect(rows).toEqual([{ resolution: "applied meanwhile: created" }, { resolution: "discarded: a test" }]);
});

test("discard shows why a letter is closed already, which can't control the terminal", async () => {
  await insertLetter(envelope);
  await ops(["discard", eventId, "--reason", "a \u001b[2Jtest\u202e", "--yes"]);
  const { stdout } = await ops(["discard", eventId, "--reason", "again", "--yes"]);
  expect(stdout).toBe(`${eventId} is already closed: discarded: a \\u001b[2Jtest\\u202e\n`);
});

test("discard closes all letters, though nobody reads what it prints", { timeout: 60_000 }, async () => {
  await insertLetter(envelope);
  await insertLetter(envelope, { eventId: eventId.replace(/1$/, "2") });
  const both = [eventId, eventId.replace(/1$/, "2")];
  const args = ["dead-letters", "discard", ...both, "--reason", "a test", "--yes"];
  expect(await spawnUnreadOps(args, environment)).toBe(0);
  const { rows } = await pool.query("select resolution from dead_letters");
  expect(rows).toEqual([{ resolution: "discarded: a test" }, { resolution: "discarded: a test" }]);
});

test("discard says if the worker closes the letter at the same moment, after a replay", async () => {
  await insertLetter(envelope);
  const worker = await pool.connect();
  try {
    await worker.query("begin");
    await resolveDeadLetter(worker, { eventId, resolvedBy: "worker", resolution: "replayed: created" });
    const discarding = ops(["discard", eventId, "--reason", "a test", "--yes"]);
    await untilBlocked(pool, 1);
    await worker.query("commit");
    expect((await discarding).stdout).toBe(`${eventId} is already closed: replayed: created\n`);
  } finally {
    worker.release(true);
  }
});
