import { setImmediate as nextTurn } from "node:timers/promises";
import { partner } from "@booking-events/harness/partners";
import { randomRuns } from "@booking-events/harness/random-runs";
import type { Partner } from "@booking-events/partners";
import type { TokenBuckets } from "@booking-events/queue";
import { createLogger, createMetrics, DeadlineExceeded } from "@booking-events/runtime";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { PartnerLimiter, type RateLimitVerdict, tokenBytes, tokenValues } from "./limit-partners.ts";

type Answer = Awaited<ReturnType<TokenBuckets["take"]>>;
interface Take {
  wanted: number;
  debt: number;
  bytes: number;
  /** Replies as Redis would, when the test chooses. */
  answer(answer: Partial<Answer>): void;
  fail(error?: Error): void;
}

const refused = { retryAfterS: expect.any(Number) };

/** A partner for whom one token is taken in advance. */
const slow = partner("slow", {}, { rateLimit: { perSecond: 10, burst: 100 } });
/** A partner for whom ten tokens are taken in advance. */
const fast = partner("fast", {}, { rateLimit: { perSecond: 200, burst: 400 } });

let takes: Take[];
let logged: Record<string, unknown>[];
let limiter: PartnerLimiter;
let processes: number;
let metric: (name: string) => Promise<number | undefined>;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["performance"] });
  takes = [];
  logged = [];
  processes = 1;
  const metrics = createMetrics("test");
  limiter = new PartnerLimiter({
    app: "ingest",
    tokenBuckets: {
      take: (_id, _size, wanted, debt = 0, bytes = 0) =>
        new Promise((resolve, reject) => {
          takes.push({
            wanted,
            debt,
            bytes,
            answer: (answer) => resolve({ granted: wanted, left: 50, bytesToday: 0, dayEndsInS: 3_600, ...answer }),
            fail: (error = new Error("Redis gave no tokens.")) => reject(error),
          });
        }),
      processCount: () => processes,
    },
    logger: createLogger({ name: "test", level: "info" }, { write: (line) => void logged.push(JSON.parse(line)) }),
    metrics,
  });
  metric = async (name) => (await metrics.getSingleMetric(`ingest_rate_limit_${name}`)?.get())?.values[0]?.value;
});
afterEach(() => {
  vi.useRealTimers();
});

const request = (count: number, of: Partner) => Promise.all(Array.from({ length: count }, () => limiter.take(of)));

/** Makes a request that takes tokens from Redis, which answers or fails. */
async function requestWithTake(of: Partner, answer: Partial<Answer> | "fails" | "is late") {
  const request = limiter.take(of);
  await nextTurn();
  if (answer === "fails") takes.at(-1)?.fail();
  else if (answer === "is late") takes.at(-1)?.fail(new DeadlineExceeded());
  else takes.at(-1)?.answer(answer);
  return await request;
}

describe("round trips", () => {
  test("requests of one turn of the event loop share one, however few tokens are taken in advance", async () => {
    const requests = request(50, slow);
    await nextTurn();
    expect(takes.map(({ wanted }) => wanted)).toEqual([50]);
    takes[0]?.answer({ left: 50 });
    const headers = { "RateLimit-Policy": '"partner";q=100;w=10', RateLimit: '"partner";r=50;t=1' };
    expect(await requests).toEqual(new Array(50).fill({ headers }));
  });

  test("tokens taken in advance need none", async () => {
    await requestWithTake(fast, { left: 390 });
    const headers = (await request(9, fast)).map((verdict) => verdict.headers["RateLimit"]);
    expect(headers.at(0)).toBe('"partner";r=398;t=1');
    expect(headers.at(-1)).toBe('"partner";r=390;t=1');
    expect(takes).toHaveLength(1);
  });

  test("when they are spent, the same number is taken in advance again, even after Redis gave none", async () => {
    await requestWithTake(fast, {});
    await request(9, fast);
    await requestWithTake(fast, { granted: 0, left: 0.5 });
    vi.advanceTimersByTime(1_000);
    await requestWithTake(fast, "fails");
    vi.advanceTimersByTime(1_000);
    await requestWithTake(fast, {});
    expect(takes.map(({ wanted }) => wanted)).toEqual([10, 10, 10, 10]);
  });

  test("no request waits for two: it does not wait for calls made before it arrived", async () => {
    const first = limiter.take(slow);
    await nextTurn();
    const second = limiter.take(slow);
    await nextTurn();
    expect(takes).toHaveLength(2);
    takes[1]?.answer({});
    expect(await second).not.toHaveProperty("retryAfterS");
    takes[0]?.answer({ granted: 0, left: 0 });
    expect(await first).toMatchObject(refused);
  });

  test("while Redis is slow, only one call takes tokens in advance", async () => {
    for (let turn = 0; turn < 3; turn += 1) {
      void limiter.take(fast);
      await nextTurn();
    }
    expect(takes.map(({ wanted }) => wanted)).toEqual([10, 1, 1]);
  });
});

describe("an empty bucket", () => {
  test("gives its tokens to the first requests, and refuses the others without asking Redis again", async () => {
    const requests = request(5, slow);
    await nextTurn();
    takes[0]?.answer({ granted: 3, left: -20 });
    const verdicts = await requests;
    expect(verdicts.map(({ retryAfterS }) => retryAfterS)).toEqual([undefined, undefined, undefined, 3, 3]);
    vi.advanceTimersByTime(1_500);
    expect(await limiter.take(slow)).toMatchObject({ retryAfterS: 1, headers: { RateLimit: '"partner";r=0;t=1' } });
    expect(takes).toHaveLength(1);
  });

  test("is asked again when a token is due", async () => {
    await requestWithTake(slow, { granted: 0, left: 0.5 });
    vi.advanceTimersByTime(50);
    expect(await requestWithTake(slow, {})).not.toHaveProperty("retryAfterS");
  });

  test("of one partner does not affect another partner, or the same one with a new limit", async () => {
    await requestWithTake(slow, { granted: 0, left: 0 });
    expect(await requestWithTake(fast, {})).not.toHaveProperty("retryAfterS");
    const raised = { ...slow, rateLimit: fast.rateLimit };
    expect(await requestWithTake(raised, {})).not.toHaveProperty("retryAfterS");
  });
});

test("a request that leaves others their tokens is refused until there are enough besides, held or not", async () => {
  await requestWithTake(fast, { granted: 10, left: 20 });
  expect(await limiter.take(fast, 29)).toMatchObject({ retryAfterS: 1 });
  expect(await limiter.take(fast, 229)).toMatchObject({ retryAfterS: 2 });
  expect(await limiter.take(fast, 28)).not.toHaveProperty("retryAfterS");
  vi.advanceTimersByTime(10);
  expect(await limiter.take(fast, 29)).not.toHaveProperty("retryAfterS");
  expect(takes).toHaveLength(1);
});

describe("a payload", () => {
  const tokensLeft = async () => Number(/r=(\d+)/.exec((await limiter.take(fast)).headers["RateLimit"] ?? "")?.[1]);

  test.each([
    ["of no bytes", { bytes: 0, values: 0 }, 1],
    ["of ordinary size", { bytes: tokenBytes, values: tokenValues }, 1],
    ["of a byte more", { bytes: tokenBytes + 1, values: 1 }, 2],
    ["of a value more", { bytes: 1, values: tokenValues + 1 }, 2],
    ["of the largest size", { bytes: 65_536, values: 10 }, 8],
    ["of the most values", { bytes: 6_000, values: 2_000 }, 8],
    ["of more values than are accepted", { bytes: 6_000, values: 32_703 }, 8],
    ["of both", { bytes: 65_536, values: 2_000 }, 8],
  ])("%s takes its tokens, the one of its request included", async (_name, size, tokens) => {
    await requestWithTake(fast, { left: 300 });
    const before = await tokensLeft();
    limiter.charge(fast, size.bytes, size.values);
    expect(before - (await tokensLeft())).toBe(tokens);
    expect(takes).toHaveLength(1);
  });

  test("takes what is not held from the bucket at once, together with tokens for the next requests", async () => {
    await requestWithTake(fast, {});
    limiter.charge(fast, 65_536, 1);
    limiter.charge(fast, 65_536, 1);
    expect(takes.map(({ wanted, debt }) => [wanted, debt])).toEqual([
      [10, 0],
      [10, 5],
    ]);
    takes[1]?.answer({});
    await nextTurn();
    await request(10, fast);
    expect(takes).toHaveLength(2);
  });

  test("that costs more than there is refuses the next requests for as long as the rest takes to earn", async () => {
    await requestWithTake(slow, { left: 0 });
    for (let payload = 0; payload < 4; payload += 1) {
      limiter.charge(slow, 65_536, 1);
      takes.at(-1)?.answer({ granted: 0, left: -7 * (payload + 1) });
    }
    await nextTurn();
    expect(await limiter.take(slow)).toEqual({
      retryAfterS: Math.ceil((28 + 1) / 10),
      headers: { "RateLimit-Policy": '"partner";q=100;w=10', RateLimit: '"partner";r=0;t=3' },
    });
    expect(takes).toHaveLength(5);
    vi.advanceTimersByTime(2_900);
    expect(await requestWithTake(slow, { left: 0 })).not.toHaveProperty("retryAfterS");
  });

  test("refuses no request that was asking for its token already", async () => {
    const asking = limiter.take(slow);
    await nextTurn();
    limiter.charge(slow, 65_536, 1);
    takes[1]?.answer({ granted: 0, left: -7 });
    takes[0]?.answer({ granted: 1, left: 0 });
    expect(await asking).not.toHaveProperty("retryAfterS");
    expect(await limiter.take(slow)).toMatchObject(refused);
  });

  test("of one partner costs another nothing", async () => {
    await requestWithTake(fast, { left: 0 });
    limiter.charge(slow, 65_536, 1);
    expect(await tokensLeft()).toBe(8);
  });

  // Each seed is a test case with its own history, so a failure can be repeated.
  test.each(Array.from({ length: 20 }, (_, seed) => seed))(
    "of any size is paid for, and whoever waits as long as it was told passes (%i)",
    async (seed) => {
      const random = randomNumbers(seed);
      const perSecond = [0.5, 3, 77.7, 1_000][Math.floor(random() * 4)] ?? 1;
      const burst = 1 + Math.floor(random() * 100);
      const some = partner("some", {}, { rateLimit: { perSecond, burst } });
      const filling = { tokens: burst, atMs: performance.now() };
      const startMs = performance.now();
      let paid = 0;
      let refusals = 0;
      for (let step = 0; step < 300; step += 1) {
        const asking = limiter.take(some);
        await answerAsBucket(filling, some);
        const { retryAfterS } = await asking;
        if (retryAfterS !== undefined) {
          refusals += 1;
          vi.advanceTimersByTime(retryAfterS * 1_000);
          const again = limiter.take(some);
          await answerAsBucket(filling, some);
          expect(await again).not.toHaveProperty("retryAfterS");
        }
        const tokens = 1 + Math.floor(random() ** 2 * 8);
        limiter.charge(some, tokens * tokenBytes, 1);
        await answerAsBucket(filling, some);
        paid += tokens;
        const earned = ((performance.now() - startMs) * perSecond) / 1_000;
        // The last payload may cost more than there was.
        expect(paid).toBeLessThanOrEqual(burst + earned + 7.001);
      }
      expect(refusals).toBeGreaterThan(0);
    },
  );

  test("is paid out of the share while Redis gives no tokens, also if it fails only then", async () => {
    processes = 4;
    await requestWithTake(slow, { left: 96, granted: 1 });
    limiter.charge(slow, 65_536, 1);
    takes.at(-1)?.fail();
    await nextTurn();
    expect((await request(40, slow)).filter(({ retryAfterS }) => retryAfterS === undefined)).toHaveLength(17);
    for (let payload = 0; payload < 3; payload += 1) limiter.charge(slow, 65_536, 1);
    // 21 tokens and its own, each of which costs this process 4.
    expect(await limiter.take(slow)).toMatchObject({ retryAfterS: 9 });
    expect(takes).toHaveLength(2);
  });
});

describe("a quota of bytes", () => {
  const limited = partner("limited", {}, { rateLimit: fast.rateLimit, bytesPerDay: 1_000 });
  const overQuota = { retryAfterS: expect.any(Number), isOverQuota: true };
  afterEach(async () => {
    const stopped = limiter.stop();
    for (const { answer } of takes) answer({});
    await stopped;
  });

  test("is counted in Redis with the next tokens that are taken", async () => {
    await requestWithTake(limited, {});
    limiter.count(limited, 300);
    limiter.count(limited, 100);
    await request(9, limited);
    await requestWithTake(limited, { bytesToday: 700 });
    await request(9, limited);
    await requestWithTake(limited, { bytesToday: 700 });
    expect(takes.map(({ bytes }) => bytes)).toEqual([0, 400, 0]);
    expect([...limiter.quotas()]).toEqual([{ partner: "limited", bytes: 1_000, usedBytes: 700 }]);
  });

  test("is counted when the process stops, without taking tokens", async () => {
    limiter.count(limited, 300);
    const stopped = limiter.stop();
    expect(takes).toMatchObject([{ wanted: 0, bytes: 300 }]);
    takes[0]?.answer({ bytesToday: 300 });
    await stopped;
  });

  test("that is used up refuses requests until the day ends, even if there are tokens", async () => {
    await requestWithTake(limited, { bytesToday: 800 });
    limiter.count(limited, 199);
    expect(await limiter.take(limited)).not.toHaveProperty("retryAfterS");
    limiter.count(limited, 1);
    expect(await limiter.take(limited)).toMatchObject({ retryAfterS: 3_600, isOverQuota: true });
    expect(await requestWithTake(fast, {})).not.toHaveProperty("retryAfterS");
    vi.advanceTimersByTime(3_599_000);
    expect(await limiter.take(limited)).toMatchObject({ retryAfterS: 1, isOverQuota: true });
  });

  test("begins again with the next day", async () => {
    expect(await requestWithTake(limited, { bytesToday: 1_000, dayEndsInS: 60 })).toMatchObject(overQuota);
    vi.advanceTimersByTime(59_000);
    expect(await limiter.take(limited)).toMatchObject(overQuota);
    vi.advanceTimersByTime(1_000);
    expect(await limiter.take(limited)).not.toHaveProperty("retryAfterS");
    expect([...limiter.quotas()]).toMatchObject([{ usedBytes: 0 }]);
  });

  test("that others have used up refuses the requests that ask, and gives back their tokens", async () => {
    const requests = request(3, limited);
    await nextTurn();
    takes[0]?.answer({ bytesToday: 1_000 });
    expect(await requests).toMatchObject([overQuota, overQuota, overQuota]);
    const raised = { ...limited, bytesPerDay: 2_000 };
    expect(await requestWithTake(raised, { bytesToday: 1_000 })).not.toHaveProperty("retryAfterS");
  });

  test("is counted later if Redis does not reply", async () => {
    await requestWithTake(limited, {});
    await request(9, limited);
    limiter.count(limited, 400);
    await requestWithTake(limited, "fails");
    vi.advanceTimersByTime(1_000);
    await requestWithTake(limited, {});
    await request(9, limited);
    await requestWithTake(limited, {});
    expect(takes.map(({ bytes }) => bytes)).toEqual([0, 400, 0, 400]);
  });

  test("is counted when Redis replies again, though nobody asks for tokens", async () => {
    await requestWithTake(limited, {});
    await request(9, limited);
    limiter.count(limited, 400);
    await requestWithTake(limited, "fails");
    const stopped = limiter.stop();
    for (let call = 0; call < 2; call += 1) {
      await nextTurn();
      takes.at(-1)?.answer({});
    }
    await stopped;
    expect(takes.slice(2)).toMatchObject([
      { wanted: 0, bytes: 0 },
      { wanted: 0, bytes: 400 },
    ]);
  });

  test("is counted when Redis replies again, though it failed when only the bytes were sent", async () => {
    vi.useFakeTimers({ toFake: ["performance", "setTimeout"] });
    await requestWithTake(limited, {});
    limiter.count(limited, 400);
    vi.advanceTimersByTime(1_000);
    takes.at(-1)?.fail();
    for (let second = 0; second < 2; second += 1) {
      await nextTurn();
      vi.advanceTimersByTime(1_000);
      takes.at(-1)?.answer({});
    }
    await nextTurn();
    expect(takes.slice(1)).toMatchObject([
      { wanted: 0, bytes: 400 },
      { wanted: 0, bytes: 0 },
      { wanted: 0, bytes: 400 },
    ]);
  });

  test("is counted once if Redis replies late, however often it is tried again", async () => {
    await requestWithTake(limited, {});
    await request(9, limited);
    for (let second = 0; second < 5; second += 1) {
      limiter.count(limited, 100);
      await requestWithTake(limited, "is late");
      vi.advanceTimersByTime(1_000);
    }
    await requestWithTake(limited, {});
    await request(9, limited);
    await requestWithTake(limited, {});
    expect(takes.map(({ bytes }) => bytes)).toEqual([0, 100, 0, 0, 0, 0, 0, 400]);
  });
});

describe("while Redis provides no tokens", () => {
  const passing = (verdicts: RateLimitVerdict[]) =>
    verdicts.filter(({ retryAfterS }) => retryAfterS === undefined).length;

  test("requests are limited to this process's share without waiting; one per second tries Redis again", async () => {
    processes = 4;
    expect(await requestWithTake(slow, "fails")).not.toHaveProperty("retryAfterS");
    expect(passing(await request(40, slow))).toBe(100 / 4 - 1);
    expect(passing(await request(200, fast))).toBe(400 / 4);
    expect(takes).toHaveLength(1);
    vi.advanceTimersByTime(900);
    expect(passing(await request(10, slow))).toBe(2);
    expect(passing(await request(100, fast))).toBe(45);

    vi.advanceTimersByTime(100);
    const trial = limiter.take(slow);
    await nextTurn();
    expect(await limiter.take(slow)).toMatchObject(refused);
    expect(takes).toHaveLength(2);
    takes[1]?.fail();
    expect(await trial).toMatchObject(refused);
    expect(await metric("by_share_total")).toBe(1 + 40 + 200 + 10 + 100 + 2);

    vi.advanceTimersByTime(1_000);
    expect(await requestWithTake(slow, {})).not.toHaveProperty("retryAfterS");
    expect(await requestWithTake(fast, {})).not.toHaveProperty("retryAfterS");
    expect(await metric("by_share_total")).toBe(353);
  });

  test("the headers describe the share, and when its next token is due", async () => {
    processes = 4;
    const policy = { "RateLimit-Policy": '"partner";q=100;w=10' };
    expect(await requestWithTake(slow, "fails")).toEqual({ headers: { ...policy, RateLimit: '"partner";r=24;t=1' } });
    await request(24, slow);
    const emptyHeaders = { ...policy, RateLimit: '"partner";r=0;t=1' };
    expect(await limiter.take(slow)).toEqual({ retryAfterS: 1, headers: emptyHeaders });
    const oneInTen = partner("one-in-ten", {}, { rateLimit: { perSecond: 0.1, burst: 4 } });
    await limiter.take(oneInTen);
    const { retryAfterS } = await limiter.take(oneInTen);
    expect(retryAfterS).toBe(40);
    // The time is exact: a second earlier is too early.
    processes = 1;
    vi.advanceTimersByTime(9_000);
    expect(await requestWithTake(oneInTen, "fails")).toMatchObject({ retryAfterS: 1 });
    vi.advanceTimersByTime(1_000);
    expect(await requestWithTake(oneInTen, "fails")).not.toHaveProperty("retryAfterS");
  });

  test("a share of less than one request is one", async () => {
    processes = 50;
    const small = partner("small", {}, { rateLimit: { perSecond: 10, burst: 5 } });
    await requestWithTake(small, "fails");
    expect(await limiter.take(small)).toMatchObject({ retryAfterS: 5 });
    vi.advanceTimersByTime(5_000);
    expect(passing([await requestWithTake(small, "fails"), ...(await request(5, small))])).toBe(1);
  });

  test("the share is a share of the tokens that Redis last reported", async () => {
    processes = 2;
    await requestWithTake(slow, { granted: 1, left: 10 });
    vi.advanceTimersByTime(200);
    const verdicts = [await requestWithTake(slow, "fails"), ...(await request(10, slow))];
    expect(passing(verdicts)).toBe((10 + 2) / 2);
  });

  test("an unreliable Redis does not give anybody a full bucket each time it answers", async () => {
    expect(await requestWithTake(slow, "fails")).not.toHaveProperty("retryAfterS");
    await request(99, slow);
    for (let second = 1; second <= 5; second += 1) {
      vi.advanceTimersByTime(1_000);
      await requestWithTake(slow, { left: 99 });
      const [first, ...others] = [await requestWithTake(slow, "fails"), ...(await request(50, slow))];
      expect(passing([first as never, ...others])).toBe(10);
    }
  });

  test.each(Array.from({ length: randomRuns(10).numRuns }, (_, seed) => seed))(
    "no more than the share is granted over any time (%i)",
    async (seed) => {
      const random = randomNumbers(seed);
      processes = 1 + Math.floor(random() * 8);
      const burst = 1 + Math.floor(random() * 300);
      const rateLimit = { perSecond: [0.5, 3, 77.7, 1_000][Math.floor(random() * 4)] ?? 1, burst };
      const some = partner("some", {}, { rateLimit });
      const passedAtMs: number[] = [];
      for (let step = 0; step < 200; step += 1) {
        const wanted = Math.floor(random() ** 4 * 100);
        const requests = request(wanted, some);
        await nextTurn();
        for (const { fail } of takes) fail();
        passedAtMs.push(...new Array(passing(await requests)).fill(performance.now()));
        vi.advanceTimersByTime(random() ** 6 * 5_000);
      }
      const capacity = Math.max(burst, processes) / processes;
      for (const [first, startMs] of passedAtMs.entries()) {
        for (let last = first; last < passedAtMs.length; last += 7) {
          const elapsedS = ((passedAtMs[last] ?? 0) - startMs) / 1_000;
          const allowed = capacity + (elapsedS * rateLimit.perSecond) / processes;
          if (last - first + 1 > allowed + 0.001) expect(last - first + 1).toBeLessThanOrEqual(allowed);
        }
      }
      expect(passedAtMs.length).toBeGreaterThan(0);
    },
  );

  test("the log says so once, with the number of processes, and once when it is over, as does the metric", async () => {
    expect(await metric("shared")).toBe(1);
    const requests = [limiter.take(slow), limiter.take(fast)];
    await nextTurn();
    takes[0]?.fail();
    await requests[0];
    // This call started before the other one failed, so its reply does not show that Redis has recovered.
    takes[1]?.answer({});
    await requests[1];
    const began = "rate limits are enforced per process: Redis provides no tokens in time";
    expect(logged).toMatchObject([{ msg: began, processes: 1, err: { type: "Error" } }]);
    expect(await metric("shared")).toBe(0);
    for (const answer of ["fails", "fails", {}] as const) {
      vi.advanceTimersByTime(1_000);
      await requestWithTake(slow, answer);
    }
    expect(logged.map(({ msg }) => msg)).toEqual([began, "rate limits are shared again"]);
    expect(await metric("shared")).toBe(1);
  });

  test("the headers count all tokens held by this process, but only its share of the others", async () => {
    processes = 4;
    await requestWithTake(fast, { left: 390 });
    expect(await limiter.take(fast)).toMatchObject({ headers: { RateLimit: '"partner";r=398;t=1' } });
    await requestWithTake(slow, "fails");
    expect(await limiter.take(fast)).toMatchObject({ headers: { RateLimit: '"partner";r=104;t=1' } });
  });

  test("a partner with tokens may spend them, and one known to have none is refused", async () => {
    await requestWithTake(fast, {});
    await requestWithTake(slow, { granted: 0, left: -600 });
    await requestWithTake(partner("another", {}), "fails");
    expect(await limiter.take(fast)).toHaveProperty("headers.RateLimit");
    expect(await limiter.take(slow)).toMatchObject(refused);
    expect(takes).toHaveLength(3);
  });
});

/** Answers what was asked, as a bucket does that fills at the partner's rate. */
async function answerAsBucket(filling: { tokens: number; atMs: number }, { rateLimit }: Partner): Promise<void> {
  await nextTurn();
  for (const { wanted, debt, answer } of takes.splice(0)) {
    const earned = ((performance.now() - filling.atMs) * rateLimit.perSecond) / 1_000;
    filling.tokens = Math.min(filling.tokens + earned, rateLimit.burst) - debt;
    filling.atMs = performance.now();
    const granted = Math.min(wanted, Math.max(Math.floor(filling.tokens + 1e-6), 0));
    filling.tokens -= granted;
    answer({ granted, left: filling.tokens });
  }
  await nextTurn();
}

/** Mulberry32, a random generator with a seed. */
function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
