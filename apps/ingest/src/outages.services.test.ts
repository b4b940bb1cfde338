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

/** A separate Redis fails while ingest runs. tests/e2e has other outages, and how the whole recovers from them. */

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

test("Redis is frozen: every partner gets 503 within 2 s", async () => {
  redis.kill("SIGSTOP");
  try {
    // The first requests arrive before ingest has detected it, and wait for Redis; later ones do not.
    const answers = await Promise.all(Array.from({ length: 20 }, () => timed(post)));
    for (const { answer, durationMs } of answers) {
      expect(answer).toMatchObject({ status: 503, headers: { "Retry-After": "5" } });
      expect(durationMs).toBeLessThan(2_000);
    }
    const problems = [expect.stringContaining("Redis does not answer")];
    await waitFor(async () =>
      expect(await main.readiness()).toMatchObject({ status: 503, body: { ready: false, problems } }),
    );
    const { answer, durationMs } = await timed(post);
    expect(answer).toMatchObject({ status: 503, headers: { Connection: "keep-alive" } });
    expect(durationMs).toBeLessThan(500);
  } finally {
    redis.kill("SIGCONT");
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

async function post(): Promise<RawAnswer> {
  const body = '{"consumerTripPartnerExternalReference":"T-1"}';
  return exchange(main.port, { path: `/booking-event/create/${acmeSecret}`, body });
}

async function timed(work: () => Promise<RawAnswer>): Promise<{ answer: RawAnswer; durationMs: number }> {
  const startedAtMs = performance.now();
  return { answer: await work(), durationMs: performance.now() - startedAtMs };
}

async function expectRecovery(): Promise<void> {
  await waitFor(async () => expect((await post()).status).toBe(200));
  await waitFor(async () => expect(await main.readiness()).toEqual({ status: 200, body: { ready: true } }));
  expect(main.child.exitCode).toBeNull();
}
