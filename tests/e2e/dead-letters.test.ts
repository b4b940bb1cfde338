import { waitFor } from "@booking-events/harness";
import { type Ran, runOps } from "@booking-events/ops/testing/run-ops";
import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { postAccepted } from "./post-event.ts";
import { type RunningApp, shareSurroundings } from "./surroundings.ts";

const secret = "a-secret-of-the-dead-letter-tests-012345";
const shared = shareSurroundings(secret);
const { running } = shared;

function post(ingest: RunningApp, reference: string, name: string): Promise<string> {
  return postAccepted(ingest, { secret, kind: "update", reference, fields: { consumerGivenName: name } });
}

function ops(...args: string[]): Promise<Ran> {
  return runOps(["dead-letters", ...args], { environment: shared.environment });
}

const show = (...args: string[]) => runOps(["events", "show", ...args], { environment: shared.environment });

/** An operator's mistake: PostgreSQL refuses the content of some events. */
async function breakDatabase(): Promise<void> {
  await shared.pool.query(
    "alter table bookings add constraint mistake check (reference not like 'POISON%' or 1 / (0 * length(reference)) = 0)",
  );
}
const repairDatabase = () => shared.pool.query("alter table bookings drop constraint mistake");

async function letters() {
  const { rows } = await shared.pool.query("select * from dead_letters order by event_id");
  return rows;
}

test("events that the queue has given up: those of workers that died are applied, damaged ones become dead letters", async () => {
  const ingest = await running("ingest");
  const held = await post(ingest, "HELD", "Canary");
  const damaged = await post(ingest, "DAMAGED", "Canary");
  const killer = await post(ingest, "KILLER", "Canary");
  const { REDIS_URL = "", QUEUE_PREFIX: prefix } = shared.environment;
  const redis = new Redis(REDIS_URL);
  try {
    for (const [place, eventId] of [damaged, killer, held].entries()) {
      await redis.lrem(`${prefix}:events:wait`, 1, eventId);
      await redis.hset(`${prefix}:events:${eventId}`, "failedReason", "job stalled more than allowable limit");
      await redis.zadd(`${prefix}:events:failed`, place, eventId);
    }
    await redis.hset(`${prefix}:events:${damaged}`, "opts", "no JSON");
    await redis.hset(`${prefix}:events:${killer}`, "trials", "3");
    const worker = await running("worker");
    await waitFor(async () =>
      expect((await shared.pool.query("select reference from bookings")).rows).toEqual([{ reference: "HELD" }]),
    );
    await waitFor(async () => expect(await redis.zcard(`${prefix}:events:failed`)).toBe(0));
    expect(await letters()).toMatchObject([
      { event_id: damaged, reference: "DAMAGED", error_code: "INVALID_ENVELOPE" },
      { event_id: killer, reference: "KILLER", error_code: "STALLED" },
    ]);
    expect((await ops("replay", damaged, "--yes")).stdout).toMatch(/applied +created/);
    const metrics = await (await fetch(`${worker.adminUrl}/metrics`)).text();
    expect(metrics).toMatch(/^booking_events_dead_letters_open\{code="STALLED".*\} 1$/m);
    expect(metrics).toMatch(/^booking_events_processed_total\{kind="update",outcome="created",partner="acme".*\} 2$/m);
    expect(metrics).toMatch(/^booking_events_apply_delay_seconds_count\S* 2$/m);
    expect(metrics).toMatch(/^booking_events_batch_events_count\S* [1-9]/m);
    expect(metrics).toMatch(/^booking_events_sweep_failures_total\S* 0$/m);
  } finally {
    redis.disconnect();
  }
});

test("events that could not be applied can be replayed in their original order, any number of times", async () => {
  const [ingest] = await Promise.all([running("ingest"), running("worker")]);
  await breakDatabase();
  const first = await post(ingest, "POISON-1", "Canary-One");
  const second = await post(ingest, "POISON-2", "Canary-Two");
  await post(ingest, "GOOD", "Canary-Three");
  await waitFor(async () => expect(await letters()).toHaveLength(2), { timeoutMs: 30_000 });
  await waitFor(async () =>
    expect((await shared.pool.query("select reference from bookings")).rows).toEqual([{ reference: "GOOD" }]),
  );

  const listed = await ops("list", "--json");
  expect(
    JSON.parse(listed.stdout)
      .map(({ eventId }: { eventId: string }) => eventId)
      .sort(),
  ).toEqual([first, second].sort());
  const shown = await show(first);
  expect(shown.stdout).toMatch(/POISON-1[\s\S]*22012/);
  expect(listed.stdout + shown.stdout).not.toContain("Canary");
  expect((await show(first, "--payload")).stdout).toContain("Canary-One");

  const unasked = await ops("replay", "--all");
  expect(unasked).toMatchObject({ exitCode: 2, stdout: "" });
  expect(unasked.stderr).toMatch(/Replay 2 dead letters \(2 × 22012\)\? .*--yes/);
  expect((await letters()).map(({ replayed_at }) => replayed_at)).toEqual([null, null]);

  const tooEarly = await ops("replay", first, "--yes");
  expect(tooEarly).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("1 of 1 could not be applied") });
  expect(tooEarly.stdout).toMatch(/dead +22012/);
  expect(await letters()).toHaveLength(2);
  expect((await letters()).find(({ event_id }) => event_id === first)).toMatchObject({
    attempts: 2,
    resolved_at: null,
  });

  await repairDatabase();
  // Sent after the first one, and applied before it.
  await post(ingest, "POISON-1", "Canary-Newest");
  await waitFor(async () =>
    expect((await shared.pool.query("select 1 from bookings where reference = 'POISON-1'")).rowCount).toBe(1),
  );
  const [once, atOnce] = await Promise.all([ops("replay", "--all", "--yes", "--json"), ops("replay", first, "--yes")]);
  expect([once.exitCode, atOnce.exitCode]).toEqual([0, 0]);
  const again = await ops("replay", first, second, "--yes", "--json");
  expect(JSON.parse(again.stdout).map(({ result }: { result: string }) => result)).toEqual(["resolved", "resolved"]);

  const { rows: bookings } = await shared.pool.query(
    "select reference, payload ->> 'consumerGivenName' as name from bookings order by reference",
  );
  expect(bookings).toEqual([
    { reference: "GOOD", name: "Canary-Three" },
    { reference: "POISON-1", name: "Canary-Newest" },
    { reference: "POISON-2", name: "Canary-Two" },
  ]);
  const { rows: events } = await shared.pool.query(
    "select id from booking_events where reference = 'POISON-1' order by sequence",
  );
  expect(events[0]).toEqual({ id: first });
  expect(await letters()).toMatchObject(
    [first, second].map((event_id) => ({
      event_id,
      replayed_by: "tester",
      resolved_by: "worker",
      resolution: event_id === first ? "replayed: superseded" : "replayed: created",
    })),
  );
  expect((await ops("list")).stdout).toBe("No dead letters.\n");
});

test("an event that is discarded is never applied, and its row holds the reason", async () => {
  const [ingest] = await Promise.all([running("ingest"), running("worker")]);
  await breakDatabase();
  const eventId = await post(ingest, "POISON-1", "Canary");
  await waitFor(async () => expect(await letters()).toHaveLength(1), { timeoutMs: 30_000 });
  expect((await ops("discard", eventId, "--reason", "sent again", "--by", "Ada", "--yes")).exitCode).toBe(0);
  expect((await ops("discard", eventId, "--reason", "twice", "--yes")).stdout).toContain(
    "already closed: discarded: sent again",
  );
  await repairDatabase();
  expect((await ops("replay", eventId, "--yes")).stdout).toMatch(/resolved +discarded: sent again/);
  expect((await shared.pool.query("select 1 from bookings")).rowCount).toBe(0);
  expect(await letters()).toMatchObject([
    { resolved_by: "Ada", resolution: "discarded: sent again", replayed_at: null },
  ]);
});
