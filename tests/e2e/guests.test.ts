import { freePort, redisUrl, uniquePrefix, waitFor } from "@booking-events/harness";
import { execute } from "@booking-events/harness/execute";
import { sampleEvent } from "@booking-events/harness/sample-event";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { type Ran, runOps, spawnUnreadOps } from "@booking-events/ops/testing/run-ops";
import { createProducer } from "@booking-events/queue";
import type { EventEnvelope } from "@booking-events/schema";
import { writeDeadLetter } from "@booking-events/store";
import { applyEvents } from "@booking-events/worker/apply/apply-events";
import { Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

const { pool, url } = useTestDatabase({ maxConnections: 2 });
let environment: Record<string, string>;
let redis: Redis;
const email = "ada.canary@example.com";
const reason = ["--reason", "request 4711"];

beforeEach(async () => {
  await pool.query("truncate bookings, booking_events, booking_changes, dead_letters, erasures");
  environment = { DATABASE_URL: url, REDIS_URL: redisUrl(), QUEUE_PREFIX: uniquePrefix() };
  redis = new Redis(redisUrl());
});
afterEach(() => redis.disconnect());

function guests(args: string[], stdin?: string): Promise<Ran> {
  return runOps(["guests", ...args], { environment, ...(stdin === undefined ? {} : { stdin }) });
}

function event(number: number, fields: Record<string, unknown> = { consumerEmail: email }): EventEnvelope {
  return sampleEvent(number, { payload: { consumerTripPartnerExternalReference: `CANARY-${number}`, ...fields } });
}

async function apply(...events: EventEnvelope[]): Promise<void> {
  await applyEvents(pool, events, { duplicateWindowMs: 0, isAlone: true });
}

/** As ingest does. */
async function enqueue(...events: EventEnvelope[]): Promise<void> {
  const { REDIS_URL: redisUrl = "", QUEUE_PREFIX: prefix = "" } = environment;
  const producer = createProducer({ redisServers: redisUrl, prefix, onError: () => {} });
  await waitFor(async () => expect(await producer.findProblems()).toEqual([]));
  for (const { version: _version, sequence: _sequence, ...accepted } of events) await producer.enqueue(accepted);
  await producer.close();
}

const queueKey = (name: string) => `${environment["QUEUE_PREFIX"]}:events:${name}`;

async function writeLetter(letter: EventEnvelope, text = JSON.stringify(letter)): Promise<void> {
  const isReadable = text === JSON.stringify(letter);
  const { eventId, partner, kind, payload } = letter;
  await writeDeadLetter(pool, {
    eventId,
    ...(isReadable ? { partner, kind, sequence: 1 } : { partner: null, kind: null, sequence: null }),
    referenceKind: isReadable ? "trip" : null,
    reference: isReadable ? (payload.consumerTripPartnerExternalReference ?? null) : null,
    errorCode: "TypeError",
    error: "The worker failed.",
    attempts: 1,
    envelope: Buffer.from(text),
  });
}

describe("guests find", () => {
  test("lists the bookings of all partners and the dead letters, by an address from stdin too", async () => {
    await apply(event(1), { ...event(2), partner: "globe" }, event(3, { consumerEmail: "other@example.com" }));
    await writeLetter(event(4));
    const { stdout, exitCode } = await guests(["find", "--email", "-", "--json"], ` ${email.toUpperCase()}\n`);
    expect(exitCode).toBe(0);
    const found = JSON.parse(stdout);
    expect(found.bookings.map((booking: { reference: string }) => booking.reference).sort()).toEqual([
      "CANARY-1",
      "CANARY-2",
    ]);
    expect(found.deadLetters).toEqual([event(4).eventId]);
    const ofOne = await guests(["find", "--email", email, "--partner", "globe"]);
    expect(ofOne.stdout).toMatch(/globe +trip +CANARY-2 +active/);
    expect(ofOne.stdout).not.toContain("CANARY-1");
  });

  const spellings = [
    "+44 (0)20 7946-0958",
    "0044 20 7946 0958",
    "+442079460958",
    "+٤٤ ٢٠ ٧٩٤٦ ٠٩٥٨",
    "＋４４２０７９４６０９５８",
  ];
  test.each(spellings)("finds the number %s", async (number) => {
    await apply(event(1, { consumerPhone: "+44 20.7946.0958" }));
    expect((await guests(["find", "--phone", number])).stdout).toContain("CANARY-1");
  });

  test("finds a trip by its reference and by its consumer's", async () => {
    await apply(event(1, { consumerPartnerExternalReference: "C-1" }));
    const partner = ["--partner", "acme"];
    expect((await guests(["find", "--reference", "CANARY-1", ...partner])).stdout).toContain("CANARY-1");
    expect((await guests(["find", "--reference", "C-1", ...partner])).stdout).toContain("CANARY-1");
    expect((await guests(["find", "--reference", "C-2", ...partner])).stdout).toBe("No bookings.\n");
    // Of a partner that no partners file has.
    expect((await guests(["find", "--reference", "C-1"])).stdout).toContain("CANARY-1");
  });

  test("finds a reference that only events have which were too old to be applied", async () => {
    await pool.query("update log_retention set horizon = now()");
    await apply(event(1));
    await pool.query("update log_retention set horizon = null");
    expect((await guests(["find", "--reference", "CANARY-1"])).stdout).toMatch(/acme +trip +CANARY-1 +expired/);
    await guests(["erase", "--reference", "CANARY-1", ...reason, "--yes"]);
    expect((await guests(["find", "--reference", "CANARY-1"])).stdout).toBe("No bookings.\n");
    expect((await pool.query("select from booking_events where reference = 'CANARY-1'")).rowCount).toBe(0);
  });

  test("needs one value", async () => {
    expect(await guests(["find"])).toMatchObject({ exitCode: 2, stderr: expect.stringContaining("Give one of") });
    expect(await guests(["find", "--email", email, "--phone", "1"])).toMatchObject({ exitCode: 2 });
  });

  test("refuses another key than the database's", async () => {
    await guests(["find", "--email", email]);
    environment["DIGEST_KEY"] = "another key, of 32 characters at least";
    expect(await guests(["find", "--email", email])).toMatchObject({
      exitCode: 1,
      stdout: "",
      stderr: expect.stringMatching(/^DIGEST_KEY is not the key/),
    });
  });
});

describe("guests erase", () => {
  test("empties bookings, dead letters and the queue, and keeps only who, when, why and how many", async () => {
    await apply(event(1), event(2, { consumerEmail: "other@example.com" }));
    await writeLetter(event(3));
    await writeLetter(event(4), `{"damaged": "${email}"`);
    // Of an erased booking, of a booking that is stored nowhere, of another guest, and one that a worker holds.
    const ofErased = { ...event(5, {}), payload: { consumerTripPartnerExternalReference: "CANARY-1" } };
    await enqueue(ofErased, event(6), event(7, { consumerEmail: "other@example.com" }), event(8));
    await redis.lmove(queueKey("wait"), queueKey("active"), "LEFT", "RIGHT");
    await redis.zadd(queueKey("delayed"), 1, event(6).eventId);
    await redis.lrem(queueKey("wait"), 1, event(6).eventId);

    const dry = await guests(["erase", "--email", email, ...reason, "--dry-run"]);
    expect(dry.stdout).toContain("CANARY-1");
    expect((await pool.query("select from bookings where erased_at is not null")).rowCount).toBe(0);

    const asked = await guests(["erase", "--email", email, ...reason]);
    expect(asked).toMatchObject({ exitCode: 2, stderr: expect.stringContaining("Add --yes") });

    const { exitCode, stdout, stderr } = await guests(["erase", "--email", email, ...reason, "--by", "Ada", "--yes"]);
    expect(exitCode).toBe(0);
    expect(stdout).toContain("Erased 4 bookings with 1 events, 2 dead letters and 2 events in the queue.");
    expect(stderr).toContain("Workers hold 1 more events");
    expect(stdout).toContain("Redis has rewritten its append-only file.");

    const left = await redis.keys(queueKey("0199*"));
    expect(left.sort()).toEqual([queueKey(event(7).eventId), queueKey(event(8).eventId)]);
    expect(await redis.zcard(queueKey("delayed"))).toBe(0);
    const { rows: events } = await pool.query("select id from booking_events where outcome = 'erased' order by id");
    expect(events.map(({ id }) => id)).toEqual([5, 6, 8].map((number) => event(number).eventId));
    const { rows: letters } = await pool.query("select envelope, reference, resolution, resolved_by from dead_letters");
    const empty = { envelope: Buffer.alloc(0), reference: null, resolution: "erased", resolved_by: "Ada" };
    expect(letters).toEqual([empty, empty]);
    const { rows: audits } = await pool.query("select * from erasures");
    expect(audits).toMatchObject([
      { erased_by: "Ada", reason: "request 4711", search: "email", bookings: 4, events: 1, dead_letters: 2, jobs: 2 },
    ]);

    // What the worker holds when it is applied, or retried, or replayed.
    await apply(event(8), ofErased, event(6), event(3));
    const { rows: bookings } = await pool.query("select reference from bookings where erased_at is null");
    expect(bookings).toEqual([{ reference: "CANARY-2" }]);
    expect((await runOps(["dead-letters", "replay", event(3).eventId, "--yes"], { environment })).stdout).toMatch(
      /resolved +erased/,
    );
  });

  test("erases everything, though nobody reads what it prints", { timeout: 60_000 }, async () => {
    await apply(event(1));
    await writeLetter(event(2));
    await enqueue(event(3));
    expect(await spawnUnreadOps(["guests", "erase", "--email", email, ...reason, "--yes"], environment)).toBe(0);
    const { rows } = await pool.query("select bookings, dead_letters, jobs from erasures");
    expect(rows).toEqual([{ bookings: 3, dead_letters: 1, jobs: 1 }]);
  });

  test("lists near misses apart, and erases none of them", async () => {
    const [known, unknown] = [{ consumerPhone: "+44 7911 123456" }, { consumerPhone: "07911 123456" }];
    await apply(event(1, known), event(2, unknown));
    await writeLetter(event(3, unknown));
    await enqueue(event(4, known), event(5, unknown));
    const phone = ["--phone", "+447911123456"];
    const found = JSON.parse((await guests(["find", ...phone, "--json"])).stdout);
    expect(found).toMatchObject({
      ...{ bookings: [{ reference: "CANARY-1" }], deadLetters: [] },
      ...{ similarBookings: [{ reference: "CANARY-2" }], similarDeadLetters: [event(3).eventId] },
    });
    const { stdout } = await guests(["erase", ...phone, ...reason, "--yes"]);
    expect(stdout).toMatch(/Near misses.*CANARY-2.*Near misses are not erased/s);
    expect(stdout).toContain("Erased 2 bookings with 1 events, 0 dead letters and 1 events in the queue.");
    const { rows } = await pool.query("select reference from bookings where erased_at is null");
    expect(rows).toEqual([{ reference: "CANARY-2" }]);
    expect(await redis.keys(queueKey("0199*"))).toEqual([queueKey(event(5).eventId)]);
    expect((await pool.query("select from dead_letters where resolved_at is null")).rowCount).toBe(1);
  });

  test("finishes what an earlier run has left", async () => {
    await apply(event(1));
    await guests(["erase", "--email", email, ...reason, "--yes"]);
    await writeLetter({ ...event(2), payload: event(1).payload });
    await enqueue({ ...event(3), payload: event(1).payload });
    const { stdout } = await guests(["erase", "--email", email, ...reason, "--yes"]);
    expect(stdout).toContain("Erased 0 bookings with 0 events, 1 dead letters and 1 events in the queue.");
    expect(await guests(["erase", "--email", email, ...reason, "--yes"])).toMatchObject({ exitCode: 0 });
  });

  test("leaves no samples in PostgreSQL's statistics, which keep none of guests unless somebody asks for them", async () => {
    await apply(event(1), event(2, { consumerEmail: "other@example.com" }));
    await writeLetter(event(3));
    await writeLetter(event(4));
    const sampled = async () => {
      await execute(url, "analyze");
      const query = "select tablename from pg_stats where schemaname = 'public' and pg_stats::text like '%CANARY-%'";
      return new Set((await pool.query(query)).rows.map(({ tablename }) => tablename.slice(0, 14)));
    };
    expect(await sampled()).toEqual(new Set());
    for (const table of ["bookings", "booking_events", "booking_changes", "dead_letters"])
      await pool.query(`alter table ${table} alter column reference set statistics 100`);
    for (const { partition } of (await pool.query("select partition from log_partitions()")).rows)
      await pool.query(`alter table ${partition} alter column reference set statistics 100`);
    expect(await sampled()).toEqual(new Set(["bookings", "booking_events", "booking_change", "dead_letters"]));
    await guests(["erase", "--email", "other@example.com", ...reason, "--yes"]);
    expect(await sampled()).toEqual(new Set());
  });

  test("leaves damaged events alone whose texts only contain a longer value", async () => {
    await writeLetter(event(1), `{"damaged": "xx${email}"`);
    await writeLetter(event(2), `{"damaged": "+44 20 7946 09580"`);
    await writeLetter(event(3), `{"damaged": "C-1"`);
    const found = async (...search: string[]) =>
      JSON.parse((await guests(["find", ...search, "--partner", "acme", "--json"])).stdout).deadLetters;
    expect(await found("--email", email)).toEqual([]);
    expect(await found("--email", `xx${email}`)).toEqual([event(1).eventId]);
    expect(await found("--phone", "+44 20 7946 0958")).toEqual([]);
    expect(await found("--phone", "+44 (0)20 79460 9580")).toEqual([event(2).eventId]);
    expect(await found("--reference", "C-1")).toEqual([]);
  });

  test("does nothing if Redis is down, and says so", async () => {
    await apply(event(1));
    environment["REDIS_URL"] = `redis://127.0.0.1:${await freePort()}`;
    const { exitCode, stderr } = await guests(["erase", "--email", email, ...reason, "--yes"]);
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/^Redis at 127\.0\.0\.1:\d+ does not answer/);
    expect((await pool.query("select from bookings where erased_at is not null")).rowCount).toBe(0);
  });

  test("rewrites the tables if it is asked to", async () => {
    await apply(event(1));
    const size = async () => {
      const { rows } = await pool.query("select pg_relation_filenode('bookings') as file");
      return rows[0].file;
    };
    const before = await size();
    const { stdout } = await guests(["erase", "--email", email, ...reason, "--yes", "--rewrite"]);
    expect(stdout).toContain("PostgreSQL has rewritten its tables.");
    expect(await size()).not.toBe(before);
  });
});
