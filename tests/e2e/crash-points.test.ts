import { waitFor } from "@booking-events/harness";
import { describe, expect, test } from "vitest";
import { postOnce } from "./post-event.ts";
import { type RunningApp, shareSurroundings } from "./surroundings.ts";

const secret = "a-secret-of-the-crash-tests-0123456789";
const shared = shareSurroundings(secret);

/** A worker of these takes over sooner than others, even if it pauses nowhere. */
function startPausing(name: "ingest" | "worker", point: string): Promise<RunningApp> {
  return shared.start(name, { entry: `tests/e2e/pausing-${name}.ts`, environment: { PAUSE_AT: point } });
}

/** Starts a worker, waits until it pauses at the point, and kills it there. */
async function crashWorker(point: string): Promise<void> {
  const worker = await startPausing("worker", point);
  await waitFor(() => worker.output().includes(`paused ${point}`), { timeoutMs: 30_000 });
  await worker.stop("SIGKILL");
}

function post(ingest: RunningApp, headers: Record<string, string> = {}): Promise<Response> {
  return postOnce(ingest, { secret, reference: "TRIP-1", headers });
}

async function count(table: string): Promise<number> {
  const { rows } = await shared.pool.query<{ count: number }>(`select count(*) as count from ${table}`);
  return rows[0]?.count ?? 0;
}

async function expectAppliedOnce(worker: RunningApp): Promise<void> {
  await waitFor(() => worker.output().includes("event applied"), { timeoutMs: 30_000 });
  // It finishes the delivery, too: the tests share the queue.
  expect(await worker.stop()).toBe(0);
  expect(await count("booking_events")).toBe(1);
  expect([await count("bookings"), await count("booking_changes"), await count("dead_letters")]).toEqual([1, 1, 0]);
}

describe("a worker that is killed", () => {
  test.each([
    ["before the transaction", "before-transaction", 0],
    ["after the commit, before the job is finished", "after-commit", 1],
  ])("%s leaves an event that is applied once", async (_, point, eventsAfterCrash) => {
    expect((await post(await shared.running("ingest"))).status).toBe(200);
    await crashWorker(point);
    expect(await count("booking_events")).toBe(eventsAfterCrash);
    await expectAppliedOnce(await startPausing("worker", "nowhere"));
  });

  test("three times inside the transaction, with everything written, leaves an event that is applied once", async () => {
    expect((await post(await shared.running("ingest"))).status).toBe(200);
    for (let kills = 0; kills < 3; kills += 1) await crashWorker("before-commit");
    expect(await count("booking_events")).toBe(0);
    const next = await startPausing("worker", "nowhere");
    await expectAppliedOnce(next);
    expect(next.output()).toContain('"attempt":1');
  });
});

test("ingest that is killed between Redis' acknowledgement and the answer: the partner's retry counts once", async () => {
  const headers = { "Idempotency-Key": "a-key" };
  const ingest = await startPausing("ingest", "before-answer");
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

  const next = await shared.running("ingest");
  await waitFor(async () => expect((await post(next, headers)).status).toBe(200));
  await shared.start("worker");
  await waitFor(async () => expect(await count("booking_events")).toBeGreaterThanOrEqual(2));
  // Whichever the worker takes first, each retry is a duplicate of the original, and the booking changed once.
  const { rows } = await shared.pool.query("select id, duplicate_of from booking_events order by sequence");
  const [original, ...retries] = rows;
  expect(original.duplicate_of).toBeNull();
  for (const { duplicate_of } of retries) expect(duplicate_of).toBe(original.id);
  expect([await count("bookings"), await count("booking_changes")]).toEqual([1, 1]);
});
