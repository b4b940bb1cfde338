import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { waitFor } from "@booking-events/harness";
import { FakeClock } from "@booking-events/harness/fake-clock";
import { partner } from "@booking-events/harness/partners";
import { writePartnersFile } from "@booking-events/harness/partners-file";
import { runOps } from "@booking-events/ops/testing/run-ops";
import { findOrInstallTool } from "@booking-events/scripts/services";
import { migrate } from "@booking-events/store";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { postAccepted, postOnce } from "./post-event.ts";
import { emptyTables, type RunningApp, useOwnServices } from "./surroundings.ts";

const secret = "a-secret-of-the-clock-tests-0123456789";
const [minute, hour, day] = [60_000, 3_600_000, 86_400_000];
const faketime = await findOrInstallTool("faketime", { say: console.log });

/** Of Redis, PostgreSQL, and one process besides. */
let clocks: Record<"redis" | "postgres" | "process", FakeClock>;

describe.skipIf(faketime === undefined)("a clock that is wrong", { timeout: 60_000 }, () => {
  const own = useOwnServices(secret, { log_error_verbosity: "terse" }, async () => {
    const [redis, postgres, node] = await Promise.all(
      (["redis", "postgres", "node"] as const).map((kind) => FakeClock.create(faketime ?? "", kind)),
    );
    clocks = { redis, postgres, process: node } as typeof clocks;
    return { redis: redis?.environment ?? {}, postgres: postgres?.environment ?? {} };
  });

  beforeAll(() => migrate(own.postgres.url));

  beforeEach(async () => {
    await emptyTables(own.pool);
    await emptyQueue();
    await own.pool.query("update log_retention set horizon = null");
  });

  afterEach(async () => {
    await Promise.all(Object.values(clocks).map((clock) => clock.set(0)));
    await waitFor(async () => expect(await readAhead()).toEqual({ redis: 0, postgres: 0 }));
  });

  afterAll(() => Promise.all(Object.values(clocks ?? {}).map((clock) => clock.remove())));

  async function emptyQueue(): Promise<void> {
    const redis = new Redis(own.redis.url);
    await redis.flushall();
    redis.disconnect();
  }

  /** In minutes. */
  async function readAhead(): Promise<{ redis: number; postgres: number }> {
    const redis = new Redis(own.redis.url);
    try {
      const [seconds] = await redis.time();
      const { rows } = await own.pool.query("select extract(epoch from clock_timestamp())::float8 as seconds");
      const toMinutes = (time: number) => Math.round((time - Date.now() / 1_000) / 60) + 0;
      return { redis: toMinutes(Number(seconds)), postgres: toMinutes(rows[0].seconds) };
    } finally {
      redis.disconnect();
    }
  }

  async function setClock(server: "redis" | "postgres", aheadMs: number): Promise<void> {
    await clocks[server].set(aheadMs);
    await waitFor(async () => expect((await readAhead())[server]).toBe(Math.round(aheadMs / minute)));
  }

  function ops(...args: string[]) {
    return runOps(args, { environment: own.environment });
  }

  async function untilProblem(app: RunningApp, sentence: RegExp): Promise<void> {
    await waitFor(
      async () => expect((await app.readiness()).body.problems).toContainEqual(expect.stringMatching(sentence)),
      { timeoutMs: 20_000 },
    );
  }

  const post = (ingest: RunningApp, kind: string, reference: string, name: string) =>
    postAccepted(ingest, { secret, kind, reference, fields: { consumerGivenName: name } });

  const readNames = async () =>
    (await own.pool.query("select reference, payload ->> 'consumerGivenName' as name from bookings order by 1")).rows;

  const readLog = async () =>
    (await own.pool.query("select count(*)::int as events, (select horizon from log_retention) from booking_events"))
      .rows[0];

  test("of PostgreSQL, 440 days ahead, removes nothing, and all processes say which one it is", async () => {
    const [ingest, worker] = await Promise.all([own.running("ingest"), own.running("worker")]);
    await post(ingest, "create", "A", "Canary");
    await waitFor(async () => expect(await readLog()).toEqual({ events: 1, horizon: expect.anything() }));
    const before = await readLog();
    await setClock("postgres", 440 * day);
    const sentence = /PostgreSQL's clock is 440 days ahead of Redis' and this host's\. Correct it/;
    const maintained = await ops("maintain");
    expect(maintained).toMatchObject({ exitCode: 1, stderr: expect.stringMatching(sentence) });
    // It maintains the database when it starts.
    const second = await own.start("worker", { isReady: false });
    await untilProblem(second, sentence);
    await untilProblem(worker, sentence);
    await waitFor(() => expect(second.output()).toContain("Nothing is removed."));
    expect((await ops("status")).stdout.replaceAll(/\s+/g, " ")).toMatch(sentence);
    expect((await ops("doctor")).stdout).toMatch(/PROBLEM +The clock of PostgreSQL is right/);
    // Events are applied as always.
    await post(ingest, "update", "A", "Canary 2");
    await waitFor(async () => expect(await readNames()).toEqual([{ reference: "A", name: "Canary 2" }]));
    expect(await readLog()).toEqual({ ...before, events: 2 });
    await setClock("postgres", 0);
    await Promise.all([worker.untilReady(), second.untilReady()]);
    await post(ingest, "update", "A", "Canary 3");
    await waitFor(async () => expect(await readNames()).toEqual([{ reference: "A", name: "Canary 3" }]));
  });

  test("of Redis, two hours behind, lets no event and no import in", async () => {
    const [ingest] = await Promise.all([own.running("ingest"), own.running("worker")]);
    await post(ingest, "create", "A", "Canary");
    await waitFor(async () => expect(await readNames()).toHaveLength(1));
    await setClock("redis", -2 * hour);
    await untilProblem(ingest, /^Redis' clock is 2 hours behind this host's\. Correct the wrong clock\.$/);
    expect((await postOnce(ingest, { secret, kind: "update", reference: "A" })).status).toBe(503);
    expect(await importBooking(new Date(Date.now() - hour))).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining("Redis' clock is 2 hours behind this host's"),
    });
    await setClock("redis", 0);
    await ingest.untilReady();
    await post(ingest, "update", "A", "Canary 2");
    await waitFor(async () => expect(await readNames()).toEqual([{ reference: "A", name: "Canary 2" }]));
  });

  test("of Redis, by less than what is refused, lets no import win over later events", async () => {
    const [ingest] = await Promise.all([own.running("ingest"), own.running("worker")]);
    await setClock("redis", -4 * minute);
    const asOf = new Date(Date.now() - minute);
    const refused = await importBooking(asOf);
    expect(refused).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("later than Redis' clock") });
    await post(ingest, "create", "A", "Canary 2");
    await waitFor(async () => expect(await readNames()).toEqual([{ reference: "A", name: "Canary 2" }]));
    expect((await importBooking(new Date(Date.now() - hour))).exitCode).toBe(0);
    await waitFor(async () => expect((await readLog()).events).toBe(2));
    expect(await readNames()).toEqual([{ reference: "A", name: "Canary 2" }]);
  });

  test("of an ingest, three days ahead or behind, makes this one refuse events, and no other", async () => {
    for (const aheadMs of [3 * day, -3 * day]) {
      await clocks.process.set(aheadMs);
      const [wrong, right] = await Promise.all([
        own.start("ingest", { environment: clocks.process.environment, isReady: false }),
        own.running("ingest"),
      ]);
      const direction = aheadMs > 0 ? "behind" : "ahead of";
      await untilProblem(wrong, new RegExp(`^Redis' clock is 3 days ${direction} this host's\\.`));
      expect((await postOnce(wrong, { secret, reference: "A" })).status).toBe(503);
      await post(right, "create", "A", "Canary");
    }
  });

  test("of an ingest or a lookup ends no partner's secret, and prolongs none", async () => {
    const file = join(own.folder, "expiring.json");
    const inMs = (ms: number) => new Date(Date.now() + ms).toISOString();
    const secrets = { valid: "valid-for-an-hour-0123456789abcdefg", expired: "expired-an-hour-ago-0123456789abcd" };
    writePartnersFile(file, [partner("acme", { [secrets.valid]: inMs(hour), [secrets.expired]: inMs(-hour) })]);
    const start = (name: "ingest" | "lookup") =>
      own.start(name, { environment: { ...clocks.process.environment, PARTNERS_FILE: file }, isReady: false });
    const [ingest, lookup] = await Promise.all([start("ingest"), start("lookup")]);
    const ask = async (path: string, init?: RequestInit) => (await fetch(path, init)).status;
    const answersTo = async (given: string) => [
      (await postOnce(ingest, { secret: given, reference: "A" })).status,
      await ask(`${lookup.url}/booking-event/booking/${given}?reference=NEVER-SENT`),
    ];
    const answers = async () => ({ valid: await answersTo(secrets.valid), expired: await answersTo(secrets.expired) });
    const right = { valid: [200, 404], expired: [403, 403] };
    const undecided = { valid: [503, 503], expired: [503, 503] };
    await waitFor(async () => expect(await answers()).toEqual(right));
    for (const aheadMs of [3 * day, -3 * day]) {
      await clocks.process.set(aheadMs);
      const ofValid: number[] = [];
      await waitFor(async () => {
        const given = await answers();
        ofValid.push(...given.valid);
        expect(given).toEqual(undecided);
      });
      // Not even in the moment in which the clock is set.
      expect(ofValid).not.toContain(403);
      await clocks.process.set(0);
      await waitFor(async () => expect(await answers()).toEqual(right));
    }
  });

  test("of a worker makes this one take no events, and removes nothing", async () => {
    // The one whose clock is right would take them.
    await (await own.running("worker")).stop();
    const ingest = await own.running("ingest");
    await post(ingest, "create", "A", "Canary");
    await clocks.process.set(3 * day);
    const worker = await own.start("worker", { environment: clocks.process.environment, isReady: false });
    await untilProblem(worker, /^This host's clock is 3 days ahead of PostgreSQL's and Redis'\. Correct it/);
    const eventId = await post(ingest, "update", "A", "Canary 2");
    await waitFor(async () =>
      expect(await worker.metrics()).toMatch(/^booking_events_backlog\{state="waiting"\S* 2$/m),
    );
    expect(await readNames()).toEqual([]);
    await clocks.process.set(0);
    await waitFor(async () => expect(await readNames()).toEqual([{ reference: "A", name: "Canary 2" }]));
    await waitFor(() => expect(worker.output()).toContain(eventId));
  });

  function importBooking(asOf: Date) {
    const file = join(own.folder, "bookings.ndjson");
    const booking = { consumerTripPartnerExternalReference: "A", consumerGivenName: "Canary imported" };
    writeFileSync(file, `${JSON.stringify(booking)}\n`);
    return ops("import", file, "--partner", "acme", "--as-of", asOf.toISOString());
  }
});
