import { waitFor } from "@booking-events/harness";
import { describe, expect, test } from "vitest";
import { postOnce } from "./post-event.ts";
import { prepareSurroundings, type RunningApp } from "./surroundings.ts";

const secret = "a-secret-of-the-crash-tests-0123456789";
const surroundings = prepareSurroundings(secret);

function start(name: "ingest" | "worker", pause?: string): Promise<RunningApp> {
  return surroundings().start(name, {
    entry: `tests/e2e/pausing-${name}.ts`,
    environment: pause === undefined ? {} : { PAUSE_AT: pause },
  });
}

/** Starts a worker, waits until it pauses at the point, and kills it there. */
async function crash(name: "worker", point: string): Promise<void> {
  const app = await start(name, point);
  await waitFor(() => app.output().includes(`paused ${point}`), { timeoutMs: 30_000 });
  await app.stop("SIGKILL");
}

function post(ingest: RunningApp, headers: Record<string, string> = {}): Promise<Response> {
  return postOnce(ingest, { secret, reference: "TRIP-1", headers });
}

async function count(table: string): Promise<number> {
  const { rows } = await surroundings().pool.query<{ count: number }>(`select count(*) as count from ${table}`);
  return rows[0]?.count ?? 0;
}

async function expectAppliedOnce(): Promise<void> {
  await waitFor(async () => expect(await count("booking_events")).toBe(1), { timeoutMs: 30_000 });
  expect([await count("bookings"), await count("booking_changes"), await count("dead_letters")]).toEqual([1, 1, 0]);
}

describe("a worker that is killed", () => {
  test.each([
    ["before the transaction", "before-transaction", 0],
    ["after the commit, before the job is finished", "after-commit", 1],
  ])("%s leaves an event that is applied once", async (_, point, eventsAfterCrash) => {
    expect((await post(await start("ingest"))).status).toBe(200);
    await crash("worker", point);
    expect(await count("booking_events")).toBe(eventsAfterCrash);
    const next = await start("worker");
    await waitFor(() => next.output().includes("event applied"), { timeoutMs: 30_000 });
    await expectAppliedOnce();
  });

  test("three times inside the transaction, with everything written, leaves an event that is applied once", async () => {
    expect((await post(await start("ingest"))).status).toBe(200);
    for (let kills = 0; kills < 3; kills += 1) await crash("worker", "before-commit");
    expect(await count("booking_events")).toBe(0);
    const next = await start("worker");
    await waitFor(() => next.output().includes("event applied"), { timeoutMs: 30_000 });
    expect(next.output()).toContain('"attempt":1');
    await expectAppliedOnce();
  });
});

test("ingest that is killed between Redis' acknowledgement and the answer: the partner's retry counts once", async () => {
  const headers = { "Idempotency-Key": "a-key" };
  const ingest = await start("ingest", "before-answer");
  const isPaused = () => ingest.output().includes("paused before-answer");
  let unanswered = Promise.resolve("not sent");
  // On a busy machine, Redis may not confirm the event in time. It is refused then, and sent again: here and below.
  while (!isPaused()) {
    unanswered = post(ingest, headers).then(
      () => "answered",
      () => "connection lost",
    );
    await Promise.race([unanswered, waitFor(isPaused)]);
  }
  await ingest.stop("SIGKILL");
  expect(await unanswered).toBe("connection lost");

  const next = await start("ingest");
  await waitFor(async () => expect((await post(next, headers)).status).toBe(200));
  await start("worker");
  await waitFor(async () => expect(await count("booking_events")).toBeGreaterThanOrEqual(2));
  // Whichever the worker takes first, each retry is a duplicate of the original, and the booking changed once.
  const { rows } = await surroundings().pool.query("select id, duplicate_of from booking_events order by sequence");
  const [original, ...retries] = rows;
  expect(original.duplicate_of).toBeNull();
  for (const { duplicate_of } of retries) expect(duplicate_of).toBe(original.id);
  expect([await count("bookings"), await count("booking_changes")]).toEqual([1, 1]);
});
