import { waitFor } from "@booking-events/harness";
import { type Ran, runOps } from "@booking-events/ops/testing/run-ops";
import { expect, test } from "vitest";
import { postAccepted } from "./post-event.ts";
import { prepareSurroundings, type RunningApp } from "./surroundings.ts";

const secret = "a-secret-of-the-pause-tests-0123456789012";
const surroundings = prepareSurroundings(secret);

async function queue(command: "pause" | "resume"): Promise<string> {
  const { environment } = surroundings();
  return (await runOps(["queue", command], { environment })).stdout;
}

async function appliedReferences(): Promise<string[]> {
  const { rows } = await surroundings().pool.query<{ reference: string }>(
    "select reference from booking_events order by sequence",
  );
  return rows.map(({ reference }) => reference);
}

async function warningsOf(worker: RunningApp): Promise<string[] | undefined> {
  return ((await worker.readiness()).body as { warnings?: string[] }).warnings;
}

async function untilPauseIsReported(worker: RunningApp): Promise<void> {
  await waitFor(async () => expect(await warningsOf(worker)).toEqual([expect.stringMatching(/paused.*queue resume/)]));
  expect(await worker.metrics()).toMatch(/^booking_events_queue_paused\{.*\} 1$/m);
}

test("a paused queue accepts events, no worker takes one, not even a new one, and none is lost", async () => {
  const [ingest, first] = await Promise.all([surroundings().start("ingest"), surroundings().start("worker")]);
  await postAccepted(ingest, { secret, reference: "before" });
  await waitFor(async () => expect(await appliedReferences()).toEqual(["before"]));

  expect(await queue("pause")).toMatch(/^The queue is paused\./);
  expect(await queue("pause")).toMatch(/^The queue is already paused\./);
  await postAccepted(ingest, { secret, reference: "one" });
  await postAccepted(ingest, { secret, reference: "two" });
  await untilPauseIsReported(first);
  expect(await first.stop("SIGTERM")).toBe(0);
  const second = await surroundings().start("worker");
  await untilPauseIsReported(second);
  await postAccepted(ingest, { secret, reference: "three" });
  await waitFor(async () => expect(await second.metrics()).toMatch(/^booking_events_backlog\{state="waiting".*\} 3$/m));
  expect(await appliedReferences()).toEqual(["before"]);

  expect(await queue("resume")).toMatch(/^The queue is resumed\./);
  await waitFor(async () => expect(await appliedReferences()).toEqual(["before", "one", "two", "three"]));
  await waitFor(async () => expect(await warningsOf(second)).toBeUndefined());
  expect(await second.metrics()).toMatch(/^booking_events_queue_paused\{.*\} 0$/m);
  expect(await queue("resume")).toMatch(/^The queue is not paused\./);
}, 60_000);

const withShards = (count: number) => ({ environment: { QUEUE_SHARDS: String(count) } });

function queueWithShards(command: "pause" | "resume", count: number): Promise<Ran> {
  return runOps(["queue", command], {
    environment: { ...surroundings().environment, ...withShards(count).environment },
  });
}

async function postTwenty(ingest: RunningApp): Promise<void> {
  for (let number = 0; number < 20; number += 1) await postAccepted(ingest, { secret, reference: `TRIP-${number}` });
}

test("a queue stays paused while its number of shards changes, and is resumed in all by a command that knows one", async () => {
  const first = await surroundings().start("worker");
  await queueWithShards("pause", 1);
  await untilPauseIsReported(first);
  expect(await first.stop()).toBe(0);
  const [ingest, worker] = await Promise.all([
    surroundings().start("ingest", withShards(4)),
    surroundings().start("worker", withShards(4)),
  ]);
  await postTwenty(ingest);
  await waitFor(async () =>
    expect(await worker.metrics()).toMatch(/^booking_events_backlog\{state="waiting".*\} 20$/m),
  );
  expect(await appliedReferences()).toEqual([]);
  await queueWithShards("resume", 4);
  await waitFor(async () => expect(await appliedReferences()).toHaveLength(20));

  await queueWithShards("pause", 4);
  await untilPauseIsReported(worker);
  await postTwenty(ingest);
  expect(await queueWithShards("resume", 1)).toMatchObject({
    exitCode: 0,
    stdout: expect.stringMatching(/is resumed/),
  });
  await waitFor(async () => expect(await appliedReferences()).toHaveLength(40));
}, 60_000);
