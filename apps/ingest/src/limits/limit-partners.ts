import type { Partner } from "@booking-events/partners";
import type { TokenBuckets } from "@booking-events/queue";
import { gatherPerTurn } from "@booking-events/queue";
import { Counter, type Logger, type Registry } from "@booking-events/runtime";
import { describePolicy, describeQuota } from "./rate-limit-headers.ts";

interface RateLimitVerdict {
  /** undefined: the request is within its partner's limit. */
  retryAfterS?: number;
  /** What the answer says of the limit, whatever else becomes of the request. */
  headers: Readonly<Record<string, string>>;
}

export type LimitPartner = (partner: Partner) => Promise<RateLimitVerdict>;

/** What this process knows of a partner's bucket. */
interface KnownBucket {
  /** Tokens that were taken out of the bucket and not spent yet. */
  held: number;
  /** In the bucket at `leftAtMs`, by what Redis said and what was let through without it since then. */
  left: number;
  leftAtMs: number;
  /** No token is there before this time. */
  emptyUntilMs: number;
  takesUnderWay: number;
  /** For a request that finds none here. */
  takeToken: (partner: Partner) => Promise<RateLimitVerdict>;
  policy: string;
}

/**
 * How much a process takes ahead of its requests, as a part of the burst or of a second's tokens, whichever is less.
 * It is what all processes together may exceed a limit by, for each process, and what saves most round trips to Redis.
 */
const aheadShare = 0.05;
/** While Redis gives no tokens, one request tries again each second; nobody else waits for it. */
const tryAgainMs = 1_000;

/** A bucket fills by fractions of a token, whose sum may fall short of a whole one by this much. */
const roundingError = 1e-6;

/**
 * One token for each request, out of a bucket per partner that all processes share. A request waits for one answer of
 * Redis at most, so for no longer than `takeTokens` does. While Redis gives no tokens in time, each process enforces
 * its share of the limit by itself: a partner can't get around its limit by slowing Redis down, and an event that can
 * be queued isn't refused because a limit can't be looked up.
 *
 * @param options.processCount how many processes share the buckets, as far as is known
 */
export function createPartnerLimiter(options: {
  takeTokens: TokenBuckets["take"];
  processCount: TokenBuckets["processCount"];
  logger: Logger;
  metrics: Registry;
}): LimitPartner {
  const { takeTokens, processCount, logger } = options;
  const requestsByShare = new Counter({
    name: "ingest_rate_limit_by_share_total",
    help: "Requests that were held to this process's share of their partner's limit: Redis gave no tokens in time.",
    registers: [options.metrics],
  });
  // By the object, which is a new one in each version of the partners file: a changed limit begins with a full bucket.
  const buckets = new WeakMap<Partner, KnownBucket>();
  /** 0: Redis gives tokens in time. */
  let tryAgainAtMs = 0;

  function bucketOf(partner: Partner): KnownBucket {
    let bucket = buckets.get(partner);
    if (bucket === undefined) {
      const takeToken = gatherPerTurn<Partner, RateLimitVerdict>((requests) => takeFor(requests.length, partner));
      const policy = describePolicy(partner.rateLimit);
      const [left, leftAtMs] = [partner.rateLimit.burst, performance.now()];
      bucket = { held: 0, left, leftAtMs, emptyUntilMs: 0, takesUnderWay: 0, takeToken, policy };
      buckets.set(partner, bucket);
    }
    return bucket;
  }

  /** For all requests of one turn. Those of the next do not wait for it, but ask for themselves. */
  async function takeFor(requests: number, partner: Partner): Promise<RateLimitVerdict[]> {
    const bucket = bucketOf(partner);
    const isTrial = tryAgainAtMs > 0;
    // Of several that are under way only one takes ahead, or a slow Redis would make us hold more than the share.
    const wanted = Math.max(requests, bucket.takesUnderWay === 0 ? takenAhead(partner.rateLimit) : 1);
    bucket.takesUnderWay += 1;
    try {
      const { granted, left, waitMs } = await takeTokens(partner.id, partner.rateLimit, wanted);
      // Not the answer to one that was asked before another failed, or a Redis at the edge of slow would fill the log.
      if (isTrial) {
        tryAgainAtMs = 0;
        logger.info("rate limits are shared again");
      }
      const passing = Math.min(granted, requests);
      bucket.held += granted - passing;
      const nowMs = performance.now();
      // Redis knows nothing of what was let through without it. The two differ only until the bucket has been full.
      bucket.left = Math.min(left, refill(bucket, partner, nowMs));
      bucket.leftAtMs = nowMs;
      if (granted < wanted) bucket.emptyUntilMs = nowMs + waitMs;
      const [passed, refused] = [pass(bucket), refusal(bucket, waitMs)];
      return Array.from({ length: requests }, (_, place) => (place < passing ? passed : refused));
    } catch (error) {
      if (tryAgainAtMs === 0) {
        const processes = processCount();
        logger.warn({ err: error, processes }, "rate limits are not shared: Redis gives no tokens in time");
      }
      tryAgainAtMs = performance.now() + tryAgainMs;
      return Array.from({ length: requests }, () => judgeByShare(partner, bucket));
    } finally {
      bucket.takesUnderWay -= 1;
    }
  }

  /**
   * Carries on what is known of the bucket: it fills at the partner's rate, and each request takes as many tokens as
   * there are processes, since the others let requests pass at the same time. So a Redis that fails again and again
   * gives nobody a full bucket each time.
   */
  function judgeByShare(partner: Partner, bucket: KnownBucket): RateLimitVerdict {
    requestsByShare.inc();
    const price = processCount();
    const nowMs = performance.now();
    bucket.left = refill(bucket, partner, nowMs, price);
    bucket.leftAtMs = nowMs;
    const missing = price - bucket.left;
    if (missing > roundingError) return refusal(bucket, (missing / partner.rateLimit.perSecond) * 1_000, price);
    bucket.left = Math.max(-missing, 0);
    return pass(bucket, price);
  }

  return async function limitPartner(partner) {
    const bucket = bucketOf(partner);
    if (bucket.held > 0) {
      bucket.held -= 1;
      return pass(bucket, tryAgainAtMs > 0 ? processCount() : 1);
    }
    const nowMs = performance.now();
    if (nowMs < bucket.emptyUntilMs) return refusal(bucket, bucket.emptyUntilMs - nowMs);
    if (nowMs < tryAgainAtMs) return judgeByShare(partner, bucket);
    if (tryAgainAtMs > 0) tryAgainAtMs = nowMs + tryAgainMs;
    return bucket.takeToken(partner);
  };
}

/** What is in the bucket now. It holds one request at least, or a share of less than that would refuse everything. */
function refill({ left, leftAtMs }: KnownBucket, { rateLimit }: Partner, nowMs: number, price = 1): number {
  const { perSecond, burst } = rateLimit;
  return Math.min(left + ((nowMs - leftAtMs) * perSecond) / 1_000, Math.max(burst, price));
}

/** @param price tokens that a request takes */
function pass(bucket: KnownBucket, price = 1): RateLimitVerdict {
  return { headers: headersOf(bucket, price, 1) };
}

function refusal(bucket: KnownBucket, waitMs: number, price = 1): RateLimitVerdict {
  const retryAfterS = Math.max(1, Math.ceil(waitMs / 1_000));
  return { retryAfterS, headers: headersOf(bucket, price, retryAfterS) };
}

function takenAhead({ perSecond, burst }: Partner["rateLimit"]): number {
  return Math.max(1, Math.floor(aheadShare * Math.min(perSecond, burst)));
}

function headersOf({ policy, held, left }: KnownBucket, price: number, seconds: number): Record<string, string> {
  const available = held + Math.floor((left + roundingError) / price);
  return { "RateLimit-Policy": policy, RateLimit: describeQuota(available, seconds) };
}
