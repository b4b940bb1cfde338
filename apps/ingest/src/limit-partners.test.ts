import { setImmediate as nextTurn } from "node:timers/promises";
import { createLogger, createMetrics, type Partner } from "@booking-events/service";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createPartnerLimiter, type LimitPartner } from "./limit-partners.ts";
import { partner } from "./testing/partners.ts";
import type { TokenBuckets } from "./token-buckets.ts";

type Answer = Awaited<ReturnType<TokenBuckets["take"]>>;
interface Take {
  wanted: number;
  /** As Redis would, whenever the test likes. */
  answer(answer: Partial<Answer>): void;
  fail(): void;
}

const refused = { retryAfterS: expect.any(Number) };
const notChecked = { headers: {} };

/** Takes one token ahead. */
const slow = partner("slow", {}, { rateLimit: { perSecond: 10, burst: 100 } });
/** Takes ten. */
const fast = partner("fast", {}, { rateLimit: { perSecond: 200, burst: 400 } });

let takes: Take[];
let logged: string[];
let limitPartner: LimitPartner;
let countUnchecked: () => Promise<number | undefined>;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["performance"] });
  takes = [];
  logged = [];
  const metrics = createMetrics("test");
  limitPartner = createPartnerLimiter({
    takeTokens: (_id, _size, wanted) =>
      new Promise((resolve, reject) => {
        takes.push({
          wanted,
          answer: (answer) => resolve({ granted: wanted, left: 50, waitMs: 0, ...answer }),
          fail: () => reject(new Error("Redis gave no tokens.")),
        });
      }),
    logger: createLogger({ name: "test", level: "info" }, { write: (line) => void logged.push(JSON.parse(line).msg) }),
    metrics,
  });
  countUnchecked = async () =>
    (await metrics.getSingleMetric("ingest_rate_limit_unchecked_total")?.get())?.values[0]?.value;
});
afterEach(() => {
  vi.useRealTimers();
});

const request = (count: number, of: Partner) => Promise.all(Array.from({ length: count }, () => limitPartner(of)));

/** A request that Redis is asked for, and that gets its answer, or none. */
async function requestWithTake(of: Partner, answer: Partial<Answer> | "fails") {
  const request = limitPartner(of);
  await nextTurn();
  if (answer === "fails") takes.at(-1)?.fail();
  else takes.at(-1)?.answer(answer);
  return await request;
}

describe("round trips", () => {
  test("what comes within one turn shares one, however little is taken ahead", async () => {
    const requests = request(50, slow);
    await nextTurn();
    expect(takes.map(({ wanted }) => wanted)).toEqual([50]);
    takes[0]?.answer({ left: 50 });
    const headers = { "RateLimit-Policy": '"partner";q=100;w=10', RateLimit: '"partner";r=50;t=1' };
    expect(await requests).toEqual(new Array(50).fill({ headers }));
  });

  test("tokens that were taken ahead need none", async () => {
    await requestWithTake(fast, { left: 390 });
    const headers = (await request(9, fast)).map((verdict) => verdict.headers["RateLimit"]);
    expect(headers.at(0)).toBe('"partner";r=398;t=1');
    expect(headers.at(-1)).toBe('"partner";r=390;t=1');
    expect(takes).toHaveLength(1);
  });

  test("nobody waits for a second one: a request does not wait for what was asked before it came", async () => {
    const first = limitPartner(slow);
    await nextTurn();
    const second = limitPartner(slow);
    await nextTurn();
    expect(takes).toHaveLength(2);
    takes[1]?.answer({});
    expect(await second).not.toHaveProperty("retryAfterS");
    takes[0]?.answer({ granted: 0, waitMs: 100 });
    expect(await first).toMatchObject(refused);
  });

  test("while Redis is slow, only one takes ahead", async () => {
    for (let turn = 0; turn < 3; turn += 1) {
      void limitPartner(fast);
      await nextTurn();
    }
    expect(takes.map(({ wanted }) => wanted)).toEqual([10, 1, 1]);
  });
});

describe("an empty bucket", () => {
  test("gives what it has to those who came first, and refuses the others without another look", async () => {
    const requests = request(5, slow);
    await nextTurn();
    takes[0]?.answer({ granted: 3, left: 0, waitMs: 2_100 });
    const verdicts = await requests;
    expect(verdicts.map(({ retryAfterS }) => retryAfterS)).toEqual([undefined, undefined, undefined, 3, 3]);
    vi.advanceTimersByTime(1_500);
    expect(await limitPartner(slow)).toMatchObject({ retryAfterS: 1, headers: { RateLimit: '"partner";r=0;t=1' } });
    expect(takes).toHaveLength(1);
  });

  test("is asked again when a token is there", async () => {
    await requestWithTake(slow, { granted: 0, left: 0, waitMs: 2_100 });
    vi.advanceTimersByTime(2_100);
    expect(await requestWithTake(slow, {})).not.toHaveProperty("retryAfterS");
  });

  test("of one partner says nothing of another, nor of the same one with another limit", async () => {
    await requestWithTake(slow, { granted: 0, waitMs: 2_100 });
    expect(await requestWithTake(fast, {})).not.toHaveProperty("retryAfterS");
    const raised = { ...slow, rateLimit: fast.rateLimit };
    expect(await requestWithTake(raised, {})).not.toHaveProperty("retryAfterS");
  });
});

describe("while Redis gives no tokens", () => {
  test("requests pass unchecked and are counted, and nobody waits; one a second tries again", async () => {
    expect(await requestWithTake(slow, "fails")).toEqual(notChecked);
    expect(await request(5, slow)).toEqual(new Array(5).fill(notChecked));
    expect(await request(5, fast)).toEqual(new Array(5).fill(notChecked));
    expect(takes).toHaveLength(1);

    vi.advanceTimersByTime(1_000);
    const trial = limitPartner(slow);
    await nextTurn();
    expect(await request(5, slow)).toEqual(new Array(5).fill(notChecked));
    expect(takes).toHaveLength(2);
    takes[1]?.fail();
    expect(await trial).toEqual(notChecked);
    expect(await countUnchecked()).toBe(17);

    vi.advanceTimersByTime(1_000);
    expect(await requestWithTake(slow, {})).toHaveProperty("headers.RateLimit");
    expect(await requestWithTake(fast, {})).toHaveProperty("headers.RateLimit");
    expect(await countUnchecked()).toBe(17);
  });

  test("the log says so once, and once when it is over", async () => {
    const requests = [limitPartner(slow), limitPartner(fast)];
    await nextTurn();
    takes[0]?.fail();
    await requests[0];
    // Asked before the other failed, so it says nothing of how Redis is now.
    takes[1]?.answer({});
    await requests[1];
    expect(logged).toEqual(["rate limits are not checked: Redis gives no tokens in time"]);
    for (const answer of ["fails", "fails", {}] as const) {
      vi.advanceTimersByTime(1_000);
      await requestWithTake(slow, answer);
    }
    expect(logged).toEqual([
      "rate limits are not checked: Redis gives no tokens in time",
      "rate limits are checked again",
    ]);
  });

  test("who has tokens passes with them, and who is known to have none is refused", async () => {
    await requestWithTake(fast, {});
    await requestWithTake(slow, { granted: 0, left: 0, waitMs: 60_000 });
    await requestWithTake(partner("another", {}), "fails");
    expect(await limitPartner(fast)).toHaveProperty("headers.RateLimit");
    expect(await limitPartner(slow)).toMatchObject(refused);
  });
});
