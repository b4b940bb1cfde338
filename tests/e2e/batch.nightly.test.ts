import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { type IncomingMessage, request } from "node:http";
import { createInterface } from "node:readline";
import { setTimeout as wait } from "node:timers/promises";
import { waitFor } from "@booking-events/harness";
import { expect, onTestFinished, test } from "vitest";
import { type RunningApp, useOwnServices } from "./surroundings.ts";

const secret = "a-secret-of-the-batch-tests-0123456789abc";
const own = useOwnServices(secret);

interface Answered {
  line: number;
  status: number;
  code?: string;
  eventId?: string;
}

const lines = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, index) => {
    const payload = { consumerTripPartnerExternalReference: `T-${from + index}`, consumerGivenName: "Ada".repeat(100) };
    return `${JSON.stringify({ kind: "create", payload, idempotencyKey: `k-${from + index}` })}\n`;
  }).join("");

function begin(ingest: RunningApp) {
  const headers = { "Content-Type": "application/x-ndjson", Authorization: `Bearer ${secret}` };
  const sending = request(`${ingest.url}/booking-event/batch`, { method: "POST", headers });
  sending.on("error", () => {});
  sending.flushHeaders();
  onTestFinished(() => void sending.destroy());
  return { sending, response: once(sending, "response").then(([response]) => response as IncomingMessage) };
}

/** Reads answers until there are no more, however the connection ends. */
async function readAll(response: IncomingMessage, onAnswer: (count: number) => void = () => {}): Promise<Answered[]> {
  const answered: Answered[] = [];
  response.on("error", () => {});
  try {
    for await (const line of createInterface({ input: response })) {
      answered.push(JSON.parse(line));
      onAnswer(answered.length);
    }
  } catch {
    // Cut off, perhaps in the middle of a line.
  }
  return answered;
}

async function expectApplied(answered: Answered[]): Promise<void> {
  const ids = answered.filter(({ status }) => status === 200).map(({ eventId }) => eventId);
  expect(ids.length).toBeGreaterThan(0);
  await waitFor(
    async () => {
      const { rows } = await own.pool.query("select count(*)::int as count from booking_events where id = any($1)", [
        ids,
      ]);
      expect(rows[0].count).toBe(ids.length);
    },
    { timeoutMs: 60_000 },
  );
}

test("ingest that is killed in the middle of a batch: each line that was answered 200 is applied", async () => {
  const ingest = await own.start("ingest");
  await own.running("worker");
  const batch = begin(ingest);
  batch.sending.end(lines(0, 20_000));
  let stopped: Promise<unknown> | undefined;
  const answered = await readAll(await batch.response, (count) => {
    if (count >= 3_000) stopped ??= ingest.stop("SIGKILL");
  });
  await stopped;
  expect(answered.length).toBeGreaterThanOrEqual(3_000);
  expect(answered.length).toBeLessThan(20_000);
  await expectApplied(answered);
}, 120_000);

test("Redis that is killed in the middle of a batch: it ends with a 503, and each line before it is applied", async () => {
  const ingest = await own.running("ingest");
  await own.running("worker");
  const batch = begin(ingest);
  batch.sending.write(lines(20_000, 40_000));
  let killed: Promise<unknown> | undefined;
  const answered = await readAll(await batch.response, (count) => {
    if (count < 3_000 || killed !== undefined) return;
    own.redis.kill("SIGKILL");
    killed = own.redis.ended();
  });
  await killed;
  expect(answered.at(-1)).toMatchObject({ status: 503, line: answered.length });
  expect(answered.slice(0, -1).every(({ status }) => status === 200)).toBe(true);
  await own.redis.restart();
  await expectApplied(answered);
}, 120_000);

test("200,000 lines whose answers are read only at the end take little memory, and others go on", async () => {
  const ingest = await own.running("ingest");
  await waitFor(async () => expect((await ingest.readiness()).status).toBe(200), { timeoutMs: 60_000 });
  const peakMegabytes = async () =>
    Number(/VmHWM:\s+(\d+)/.exec(await readFile(`/proc/${ingest.child.pid}/status`, "utf8"))?.[1]) / 1_024;
  const before = await peakMegabytes();
  const batch = begin(ingest);
  const startedAtMs = performance.now();
  for (let from = 0; from < 200_000; from += 2_000) {
    if (!batch.sending.write(lines(from, from + 2_000))) await once(batch.sending, "drain");
  }
  batch.sending.end();
  await once(batch.sending, "finish");
  await waitFor(() => expect(batch.sending.socket?.writableLength).toBe(0), { timeoutMs: 120_000 });
  const answered = await readAll(await batch.response);
  const took = performance.now() - startedAtMs;
  const grown = (await peakMegabytes()) - before;
  console.info(`200,000 lines: ${Math.round(took)} ms, ${Math.round(grown)} MB more at the peak`);
  expect(answered.map(({ line }) => line)).toEqual(Array.from({ length: 200_000 }, (_, index) => index + 1));
  expect(answered.every(({ status }) => status === 200)).toBe(true);
  expect(grown).toBeLessThan(150);
}, 300_000);

test("a batch that arrives one byte a second ends with a 408", async () => {
  const batch = begin(await own.running("ingest"));
  batch.sending.write(lines(0, 1));
  const text = Buffer.from(lines(1, 2));
  let isOver = false;
  const answered = batch.response.then(readAll).finally(() => {
    isOver = true;
  });
  for (let at = 0; !isOver && at < text.length; at += 1) {
    batch.sending.write(text.subarray(at, at + 1));
    await wait(1_000);
  }
  expect(await answered).toMatchObject([{ status: 200 }, { line: 2, status: 408, code: "too-slow" }]);
}, 60_000);
