import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { uniquePrefix, waitFor } from "@booking-events/harness";
import { exchange, type RawAnswer } from "@booking-events/harness/http-client";
import { acmeSecret, partnersFile } from "@booking-events/harness/partners";
import { writePartnersFile } from "@booking-events/harness/partners-file";
import { type DataServer, startRedis } from "@booking-events/scripts/services";
import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { type RunningMain, startMain } from "./testing/run-main.ts";

/** A separate Redis fails in different ways while the same ingest process runs. */

let folder: string;
let redis: DataServer;
let environment: Record<string, string>;
let main: RunningMain;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "booking-events-outages-"));
  redis = await startRedis({ dir: join(folder, "redis") });
  const partnersPath = join(folder, "partners.json");
  writePartnersFile(partnersPath, partnersFile.partners);
  environment = { REDIS_URL: redis.url, QUEUE_PREFIX: uniquePrefix(), PARTNERS_FILE: partnersPath };
  main = await startMain(environment);
});

beforeEach(async () => {
  expect((await post()).status).toBe(200);
});

afterAll(async () => {
  await main?.stop("SIGKILL");
  await redis?.stop();
  rmSync(folder, { recursive: true, force: true });
});

test("Redis is killed: 503 immediately, and events are accepted again when it is back", async () => {
  redis.kill("SIGKILL");
  await redis.ended();
  await expectUnavailable("Redis does not answer");
  await redis.restart();
  await expectRecovery();
});

test("Redis is frozen: every partner gets 503 within 2 s", async () => {
  redis.kill("SIGSTOP");
  try {
    // The first requests arrive before ingest has detected it, and wait for Redis; later ones do not.
    const answers = await Promise.all(Array.from({ length: 20 }, () => timed(post)));
    for (const { answer, durationMs } of answers) {
      expect(answer).toMatchObject({ status: 503, headers: { "Retry-After": "5" } });
      expect(durationMs).toBeLessThan(2_000);
    }
    await expectUnavailable("Redis does not answer");
    expect((await timed(post)).durationMs).toBeLessThan(500);
  } finally {
    redis.kill("SIGCONT");
  }
  await expectRecovery();
});

test.each([
  ["appendfsync", "everysec", "always"],
  ["appendonly", "no", "yes"],
  ["maxmemory-policy", "allkeys-lru", "noeviction"],
  ["no-appendfsync-on-rewrite", "yes", "no"],
])("Redis answers, but with %s %s it could lose events: 503", async (name, unfit, fit) => {
  const operator = new Redis(redis.url);
  try {
    await operator.config("SET", name, unfit);
    await waitFor(async () => expect((await post()).status).toBe(503));
    await expectUnavailable(name);
  } finally {
    await operator.config("SET", name, fit);
    operator.disconnect();
  }
  await expectRecovery();
});

test("Redis is full: 503, and the log says why", async () => {
  const operator = new Redis(redis.url);
  try {
    // Ingest detects this by itself within 100 ms and sheds load. Until then, Redis refuses the events.
    await waitFor(async () => {
      await operator.config("SET", "maxmemory", "0");
      await waitFor(async () => expect((await post()).status).toBe(200));
      await operator.config("SET", "maxmemory", "1");
      expect(await post()).toMatchObject({ status: 503, headers: { "Retry-After": "5" } });
      await waitFor(
        () =>
          expect(main.logLines()).toContainEqual(
            expect.objectContaining({ outcome: "queue-unavailable", cause: "ReplyError OOM" }),
          ),
        { timeoutMs: 500 },
      );
    });
  } finally {
    await operator.config("SET", "maxmemory", "0");
    operator.disconnect();
  }
  await expectRecovery();
});

test("Redis is down when ingest starts: it reports the problem, and works when Redis is up", async () => {
  main.child.kill("SIGTERM");
  expect(await main.exited).toBe(0);
  redis.kill("SIGKILL");
  await redis.ended();
  main = await startMain(environment);
  await expectUnavailable("Redis does not answer");
  await redis.restart();
  await expectRecovery();
});

async function post(): Promise<RawAnswer> {
  const body = '{"consumerTripPartnerExternalReference":"T-1"}';
  return exchange(main.port, { path: `/booking-event/create/${acmeSecret}`, body });
}

async function timed<Result>(work: () => Promise<Result>): Promise<{ answer: Result; durationMs: number }> {
  const startedAtMs = performance.now();
  return { answer: await work(), durationMs: performance.now() - startedAtMs };
}

async function expectUnavailable(problem: string): Promise<void> {
  await waitFor(async () => {
    const { status, body } = await main.readiness();
    expect(body).toMatchObject({ ready: false, problems: [expect.stringContaining(problem)] });
    expect(status).toBe(503);
  });
  const { answer, durationMs } = await timed(post);
  expect(answer).toMatchObject({ status: 503, headers: { "Retry-After": "5", Connection: "keep-alive" } });
  expect(durationMs).toBeLessThan(2_000);
}

async function expectRecovery(): Promise<void> {
  await waitFor(async () => expect((await post()).status).toBe(200));
  await waitFor(async () => expect(await main.readiness()).toEqual({ status: 200, body: { ready: true } }));
  expect(main.child.exitCode).toBeNull();
}
