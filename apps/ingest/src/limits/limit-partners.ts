import type { Partner } from "@booking-events/partners";
import type { TokenBuckets } from "@booking-events/queue";
import { gatherPerTurn } from "@booking-events/queue";
import { Counter, type Logger, type Registry } from "@booking-events/runtime";
import { describePolicy, describeQuota } from "./rate-limit-headers.ts";

interface PayloadSize {
  bytes: number;
  /** Of JSON: objects, arrays and scalars. */
  values: number;
}

interface RateLimitVerdict {
  /** undefined: the request is within its partner's limit. */
  retryAfterS?: number;
  /** What the answer says of the limit, whatever else becomes of the request. */
  headers: Readonly<Record<string, string>>;
}

export interface PartnerLimiter {
  /** Takes one token, before any work is done for the request. */
  limitPartner: (partner: Partner) => Promise<RateLimitVerdict>;
  /**
   * Charges for a payload that was read: nothing for one of ordinary size. What the bucket can't pay at once, later
   * requests pay before they pass.
   */
  chargePartner: (partner: Partner, size: PayloadSize) => void;
}

export type LimitPartner = PartnerLimiter["limitPartner"];
export type ChargePartner = PartnerLimiter["chargePartner"];

/** What this process knows of a partner's bucket. */
interface KnownBucket {
  /** Tokens that were taken out of the bucket and not spent yet. */
  held: number;
  /** Tokens that large payloads cost, and that no token has paid for yet. Above 0, nothing is held. */
  owed: number;
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

/**
 * A payload takes one token for each started `tokenBytes`, or for each started `tokenValues` of JSON, whichever is more.
 * An ordinary booking, of 1 to 2 KB and about 40 values, takes one. The largest that is accepted takes 8: it costs
 * ingest, the worker and PostgreSQL many times as much (ADR 8).
 */
export const tokenBytes = 8_192;
export const tokenValues = 250;

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
}): PartnerLimiter {
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
      bucket = { held: 0, owed: 0, left, leftAtMs, emptyUntilMs: 0, takesUnderWay: 0, takeToken, policy };
      buckets.set(partner, bucket);
    }
    return bucket;
  }

  /** For all requests of one turn. Those of the next do not wait for it, but ask for themselves. */
  async function takeFor(requests: number, partner: Partner): Promise<RateLimitVerdict[]> {
    const bucket = bucketOf(partner);
    const isTrial = tryAgainAtMs > 0;
    // Of several that are under way only one takes ahead, or a slow Redis would make us hold more than the share.
    const wanted = bucket.owed + Math.max(requests, bucket.takesUnderWay === 0 ? takenAhead(partner.rateLimit) : 1);
    bucket.takesUnderWay += 1;
    try {
      const { granted, left, waitMs } = await takeTokens(partner.id, partner.rateLimit, wanted);
      // Not the answer to one that was asked before another failed, or a Redis at the edge of slow would fill the log.
      if (isTrial) {
        tryAgainAtMs = 0;
        logger.info("rate limits are shared again");
      }
      bucket.held += granted;
      payDebt(bucket);
      const passing = Math.min(bucket.held, requests);
      bucket.held -= passing;
      const nowMs = performance.now();
      // Redis knows nothing of what was let through without it. The two differ only until the bucket has been full.
      bucket.left = Math.min(left, refill(bucket, partner, nowMs));
      bucket.leftAtMs = nowMs;
      if (granted < wanted) bucket.emptyUntilMs = nowMs + waitMs;
      const [passed, refused] = [pass(bucket), refusal(bucket, waitMs + timeToEarn(bucket.owed, partner))];
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
    // Each process knows only what it has read itself, so a debt isn't multiplied by their number.
    const paid = Math.min(bucket.owed, bucket.left);
    bucket.left -= paid;
    bucket.owed -= paid;
    const missing = bucket.owed + price - bucket.left;
    if (missing > roundingError) return refusal(bucket, timeToEarn(missing, partner), price);
    bucket.left = Math.max(-missing, 0);
    return pass(bucket, price);
  }

  async function limitPartner(partner: Partner): Promise<RateLimitVerdict> {
    const bucket = bucketOf(partner);
    if (bucket.held > 0) {
      bucket.held -= 1;
      return pass(bucket, tryAgainAtMs > 0 ? processCount() : 1);
    }
    const nowMs = performance.now();
    if (nowMs < bucket.emptyUntilMs) {
      return refusal(bucket, bucket.emptyUntilMs - nowMs + timeToEarn(bucket.owed, partner));
    }
    if (nowMs < tryAgainAtMs) return judgeByShare(partner, bucket);
    if (tryAgainAtMs > 0) tryAgainAtMs = nowMs + tryAgainMs;
    return bucket.takeToken(partner);
  }

  function chargePartner(partner: Partner, { bytes, values }: PayloadSize): void {
    const tokens = Math.max(Math.ceil(bytes / tokenBytes), Math.ceil(values / tokenValues));
    // The first was spent before the payload was read.
    if (tokens <= 1) return;
    const bucket = bucketOf(partner);
    bucket.owed += tokens - 1;
    payDebt(bucket);
  }

  return { limitPartner, chargePartner };
}

function payDebt(bucket: KnownBucket): void {
  const paid = Math.min(bucket.held, bucket.owed);
  bucket.held -= paid;
  bucket.owed -= paid;
}

/** Milliseconds. */
function timeToEarn(tokens: number, { rateLimit }: Partner): number {
  return (tokens / rateLimit.perSecond) * 1_000;
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

function headersOf({ policy, held, owed, left }: KnownBucket, price: number, seconds: number): Record<string, string> {
  const available = Math.max(held + Math.floor((left - owed + roundingError) / price), 0);
  return { "RateLimit-Policy": policy, RateLimit: describeQuota(available, seconds) };
}
