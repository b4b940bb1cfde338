import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { waitFor } from "@booking-events/harness";
import { exchange, type RawAnswer, requestBytes } from "@booking-events/harness/http-client";
import { partner } from "@booking-events/harness/partners";
import { createGuessThrottle, guessLimits, PartnerLimiter } from "@booking-events/http";
import { createPartnerRegistry } from "@booking-events/partners";
import { createTokenBuckets } from "@booking-events/queue";
import { createLogger, createMetrics } from "@booking-events/runtime";
import { type DataServer, startRedis } from "@booking-events/scripts/services";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { startIngest, type TestIngest } from "./testing/start-ingest.ts";

/** Longer than a healthy Redis takes on a busy machine. */
const deadlineMs = 1_000;
/** At this rate, no token is added during a test. */
const slow = { perSecond: 0.01, burst: 100 };
const registry = createPartnerRegistry({
  partners: [
    partner("slow", { "slow-secret": null }, { rateLimit: slow }),
    partner("other", { "other-secret": null }, { rateLimit: slow }),
    partner("third", { "third-secret": null }, { rateLimit: slow }),
    partner("fourth", { "fourth-secret": null }, { rateLimit: slow }),
    partner("large-bytes", { "bytes-secret": null }, { rateLimit: slow }),
    partner("large-values", { "values-secret": null }, { rateLimit: slow }),
    partner("too-large", { "too-large-secret": null }, { rateLimit: slow }),
    partner("one-byte-chunks", { "chunks-secret": null }, { rateLimit: slow }),
    partner("on-hold", { "on-hold-secret": null }, { held: true }),
    partner("proxied", { "proxied-secret": null }, { rateLimit: slow }),
    partner("with-quota", { "quota-secret": null }, { bytesPerDay: 5_000 }),
    partner("without-burst", { "without-burst-secret": null }, { rateLimit: { perSecond: 1_000, burst: 1 } }),
    partner("fast", { "fast-secret": null }, { rateLimit: { perSecond: 1_000_000, burst: 1_000_000 } }),
  ],
});

let folder: string;
let redis: DataServer;
/** Two ingests that share a Redis for their buckets. */
let ingests: [TestIngest, TestIngest];
const closings: (() => void)[] = [];
const processCounts: (() => number)[] = [];
/** The number of requests limited by a process's share. */
const byShareCounts: (() => Promise<number>)[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "booking-events-limits-"));
  redis = await startRedis({ dir: join(folder, "redis") });
  ingests = [await start(), await start()];
});

afterAll(async () => {
  for (const close of closings) close();
  await Promise.all(ingests.map((ingest) => ingest.close()));
  await redis.stop();
  await rm(folder, { recursive: true, force: true });
});

async function start(): Promise<TestIngest> {
  return startIngest({ partners: () => registry, limiter: createLimiter() });
}

function createLimiter(): PartnerLimiter {
  const metrics = createMetrics("test");
  byShareCounts.push(async () => {
    const { values = [] } = (await metrics.getSingleMetric("ingest_rate_limit_by_share_total")?.get()) ?? {};
    return values[0]?.value ?? 0;
  });
  const buckets = createTokenBuckets({ redisServers: redis.url, prefix: "{limits}", onError: () => {}, deadlineMs });
  closings.push(buckets.close);
  processCounts.push(buckets.processCount);
  return new PartnerLimiter({
    app: "ingest",
    tokenBuckets: buckets,
    logger: createLogger({ name: "test", level: "silent" }),
    metrics,
  });
}

/** Waits until Redis gives tokens to the ingest. */
async function waitUntilShared(place: 0 | 1): Promise<void> {
  await waitFor(async () => {
    const before = await byShareCounts[place]?.();
    await post(ingests[place], "without-burst-secret");
    expect(await byShareCounts[place]?.()).toBe(before);
  });
}

function post(
  ingest: TestIngest,
  secret: string,
  headers: Record<string, string> = {},
  further: object = {},
): Promise<RawAnswer> {
  return exchange(ingest.port, {
    path: `/booking-event/create/${secret}`,
    headers: { "Content-Type": "application/json", ...headers },
    body: JSON.stringify({ consumerTripPartnerExternalReference: "TRIP-1", ...further }),
  });
}

const countOpen = ({ connections }: TestIngest) => [...connections.all()].length;
const count = (answers: RawAnswer[], status: number) => answers.filter((answer) => answer.status === status).length;

describe("a partner's limit", () => {
  test("applies across all processes and states when to retry; other partners are not affected", async () => {
    await Promise.all([waitUntilShared(0), waitUntilShared(1)]);
    const answers: RawAnswer[] = [];
    for (let round = 0; round < 8; round += 1) {
      answers.push(
        ...(await Promise.all(Array.from({ length: 20 }, (_, i) => post(ingests[i % 2 ? 1 : 0], "slow-secret")))),
      );
    }
    expect(count(answers, 200)).toBe(slow.burst);
    expect(count(answers, 429)).toBe(answers.length - slow.burst);
    const refused = answers.at(-1);
    expect(refused?.body).toMatch(/^\{"message":"You have exceeded your rate limit\./);
    expect(Number(refused?.headers["Retry-After"])).toBeGreaterThan(1);
    expect(refused?.headers["RateLimit-Policy"]).toBe('"partner";q=100;w=10000');
    expect(refused?.headers["RateLimit"]).toMatch(/^"partner";r=0;t=\d+$/);
    expect((await post(ingests[0], "other-secret")).status).toBe(200);
  });

  test.each([
    ["bytes", { note: "x".repeat(60_000) }],
    ["values", { list: new Array(1_990).fill(0) }],
  ])("is of what payloads cost: an eighth as many of the most %s pass", async (most, further) => {
    const answers: RawAnswer[] = [];
    for (let at = 0; at < 30; at += 1) {
      answers.push(await post(ingests[at % 2 ? 1 : 0], `${most}-secret`, {}, further));
    }
    expect(count(answers, 429)).toBe(30 - count(answers, 200));
    const paid = Math.floor(slow.burst / 8);
    expect(count(answers, 200)).toBeGreaterThanOrEqual(paid);
    // A process may hold a token when the bucket is empty, and the last payload may cost more than there is.
    expect(count(answers, 200)).toBeLessThanOrEqual(paid + ingests.length);
  });

  test("is of what was read, even of bodies that are refused for their size", async () => {
    const path = "/booking-event/create/too-large-secret";
    const statuses: number[] = [];
    for (let at = 0; at < 12; at += 1) {
      // 13 tokens.
      const answer = await exchange(ingests[0].port, requestBytes({ path, body: "x".repeat(100_000) }));
      statuses.push(answer.status);
      await waitFor(() => expect(countOpen(ingests[0])).toBe(0));
    }
    const paid = Math.ceil(slow.burst / 13);
    // What is sent when the last answer has come may be paid for later.
    expect(statuses.filter((status) => status === 413).length).toBeLessThanOrEqual(paid + 1);
    expect(statuses.at(-1)).toBe(429);
  });

  test("is of all bytes on the connection: of chunks of one byte, a sixth as many pass", async () => {
    const path = "/booking-event/create/chunks-secret";
    const body = JSON.stringify({ consumerTripPartnerExternalReference: "TRIP-1" }).padEnd(8_000);
    const statuses: number[] = [];
    for (let at = 0; at < 20; at += 1) {
      // 6 tokens, where its bytes alone are one.
      statuses.push((await exchange(ingests[0].port, requestBytes({ path, body, chunkBytes: 1 }))).status);
    }
    expect(statuses.filter((status) => status === 200).length).toBeLessThanOrEqual(Math.ceil(slow.burst / 6));
    expect(statuses.at(-1)).toBe(429);
  });

  test("is of a partner's own requests, whatever a proxy sends on the same connection", async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => agent.destroy());
    const chunked = { "Content-Type": "application/json", "Transfer-Encoding": "chunked" };
    const sockets = new Set<object>();
    const event = JSON.stringify({ consumerTripPartnerExternalReference: "TRIP-1" });
    const send = async (path: string, headers: Record<string, string>, body: string) => {
      const { port } = ingests[0];
      const sending = request({ agent, port, path: `/booking-event/${path}`, method: "POST", headers });
      sending.end(body);
      const [response] = await once(sending, "response");
      await response.toArray();
      if (sending.socket !== null) sockets.add(sending.socket);
      return response;
    };
    for (let at = 0; at < 4; at += 1) await send("create/on-hold-secret", { "X-More": "x".repeat(7_000) }, "");
    await send("create/proxied-secret", chunked, event);
    await send("batch/fast-secret", { "Content-Type": "application/x-ndjson" }, "\n".repeat(32_000));
    await send("create/proxied-secret", chunked, event);
    const { headers } = await send("create/proxied-secret", chunked, event);
    expect(sockets.size).toBe(1);
    expect(headers.ratelimit).toMatch(/;r=97;/);
  });

  test("is stated in each answer, even if it refuses the request for another reason", async () => {
    const invalid = await exchange(ingests[0].port, {
      path: "/booking-event/create/fast-secret",
      headers: { "Content-Type": "application/json" },
      body: "[]",
    });
    expect(invalid.status).toBe(400);
    expect(invalid.headers).toMatchObject({ "RateLimit-Policy": '"partner";q=1000000;w=1' });
    expect((await post(ingests[0], "nobody")).headers).not.toHaveProperty("RateLimit-Policy");
  });

  test("applies while Redis is frozen: each process enforces its share until Redis is back", async () => {
    await waitFor(() => expect(processCounts.map((count) => count())).toEqual([2, 2]));
    redis.kill("SIGSTOP");
    try {
      // A refusal that still applies needs no call to Redis.
      expect((await post(ingests[0], "slow-secret")).status).toBe(429);
      // The queue of these tests is in another Redis, which is not frozen.
      for (const ingest of ingests) {
        const answers = await Promise.all(Array.from({ length: 80 }, () => post(ingest, "third-secret")));
        expect(count(answers, 200)).toBe(slow.burst / 2);
        expect(count(answers, 429)).toBe(80 - slow.burst / 2);
        const refused = answers.find(({ status }) => status === 429);
        expect(refused?.headers["RateLimit"]).toMatch(/^"partner";r=0;t=\d+$/);
        expect(Number(refused?.headers["Retry-After"])).toBeGreaterThan(100);
      }
      expect(processCounts.map((count) => count())).toEqual([2, 2]);
    } finally {
      redis.kill("SIGCONT");
    }
    await waitUntilShared(0);
    const answers = await Promise.all(Array.from({ length: 120 }, () => post(ingests[0], "fourth-secret")));
    expect(count(answers, 200)).toBe(slow.burst);
  });
});

describe("a partner's quota of bytes", () => {
  test("applies across all processes until the day ends; other partners are not affected", async () => {
    await Promise.all([waitUntilShared(0), waitUntilShared(1)]);
    const further = { note: "x".repeat(950) };
    // About 1,000 bytes each. A process knows what others have accepted when it takes tokens, or after a second.
    const answers: RawAnswer[] = [];
    await waitFor(async () => {
      answers.push(await post(ingests[0], "quota-secret", {}, further));
      expect(answers.at(-1)?.status).toBe(429);
    });
    await waitFor(async () => expect((await post(ingests[1], "quota-secret")).status).toBe(429));
    expect(count(answers, 200)).toBe(5);
    const refused = answers.at(-1);
    expect(JSON.parse(refused?.body ?? "")).toMatchObject({ code: "quota" });
    const retryAfterS = Number(refused?.headers["Retry-After"]);
    expect(retryAfterS).toBeGreaterThan(0);
    expect(retryAfterS).toBeLessThanOrEqual(86_400);
    expect((await post(ingests[0], "fast-secret", {}, further)).status).toBe(200);
  });
});

describe("guessing", () => {
  const startGuarded = (trustedProxyHops: number) =>
    startIngest({
      trustedProxyHops,
      answerGuess: createGuessThrottle({ ...guessLimits, refusalsPerWindow: 3 }),
    });
  const guess = (ingest: TestIngest, forwardedFor: string) =>
    post(ingest, "a-guess", { "X-Forwarded-For": forwardedFor });

  test("is throttled by the connection's address, ignoring X-Forwarded-For", async () => {
    const ingest = await startGuarded(0);
    try {
      const answers: RawAnswer[] = [];
      for (let i = 0; i < 5; i += 1) answers.push(await guess(ingest, `192.0.2.${i}`));
      expect(answers.map(({ status }) => status)).toEqual([403, 403, 403, 429, 429]);
      expect(answers.at(-1)?.headers).toMatchObject({ Connection: "close", "Retry-After": expect.any(String) });
      expect(ingest.observed.at(-1)).toMatchObject({ status: 429, outcome: "unknown-secret" });
    } finally {
      await ingest.close();
    }
  });

  test("behind a proxy, is throttled by the address that the proxy wrote, ignoring those left of it", async () => {
    const ingest = await startGuarded(1);
    try {
      const statuses: number[] = [];
      for (let i = 0; i < 5; i += 1) statuses.push((await guess(ingest, `192.0.2.${i}, 198.51.100.1`)).status);
      expect(statuses).toEqual([403, 403, 403, 429, 429]);
      expect((await guess(ingest, "192.0.2.1, 198.51.100.2")).status).toBe(403);
    } finally {
      await ingest.close();
    }
  });

  test("never locks out a valid secret from the same address", async () => {
    const ingest = await startGuarded(0);
    try {
      for (let i = 0; i < 10; i += 1) await guess(ingest, "192.0.2.1");
      expect((await post(ingest, "zenith-secret")).status).toBe(200);
    } finally {
      await ingest.close();
    }
  });
});
