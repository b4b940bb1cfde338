import type { Partner } from "@booking-events/partners";
import type { TokenBuckets } from "@booking-events/queue";
import { Counter, Gauge, gatherPerTurn, type Logger, type Registry } from "@booking-events/runtime";
import { maxJsonValues } from "@booking-events/schema";
import type { PartnerFacingApp } from "../app/partner-facing-app.ts";
import { describePolicy, describeQuota } from "./rate-limit-headers.ts";

export interface RateLimitVerdict {
  /** undefined if the request is within its partner's limit. */
  retryAfterS?: number;
  /** The headers of the answer, whatever else happens to the request. */
  headers: Readonly<Record<string, string>>;
}

export interface PartnerLimiter {
  /** Takes one token, before any work is done for the request. */
  limitPartner: (partner: Partner) => Promise<RateLimitVerdict>;
  /**
   * Charges for a payload that was read, unless its size is ordinary. What the bucket can't pay at once, later requests
   * pay before they pass.
   *
   * @param values the number of JSON values: objects, arrays and scalars
   */
  chargePartner: (partner: Partner, bytes: number, values: number) => void;
}

export type LimitPartner = PartnerLimiter["limitPartner"];
export type ChargePartner = PartnerLimiter["chargePartner"];

/** What this process knows about a partner's bucket. */
interface KnownBucket {
  /** Tokens that this process has taken from the bucket and not spent. */
  held: number;
  /** Tokens that large payloads cost, and that no token has paid for yet. Above 0, nothing is held. */
  owed: number;
  /** The tokens in the bucket at `leftAtMs`: what Redis reported, less those of requests accepted without Redis. */
  left: number;
  leftAtMs: number;
  /** The bucket has no tokens before this time. */
  emptyUntilMs: number;
  takesUnderWay: number;
  /** Takes a token from Redis, for a request that finds none held here. */
  takeToken: (partner: Partner) => Promise<RateLimitVerdict>;
  policy: string;
}

/**
 * How many tokens a process takes in advance, as a share of the burst or of one second's tokens, whichever is less. All
 * processes together may exceed a limit by this share for each process. Taking tokens in advance saves most round trips
 * to Redis.
 */
const aheadShare = 0.05;
/** While Redis provides no tokens, one request per second tries it again; no other request waits for it. */
const tryAgainMs = 1_000;

/**
 * A payload takes one token for each started `tokenBytes`, or for each started `tokenValues` of JSON, whichever is more.
 * An ordinary booking, of 1 to 2 KB and about 40 values, takes one. The largest that is accepted takes 8: it costs
 * ingest, the worker and PostgreSQL many times as much.
 */
export const tokenBytes = 8_192;
export const tokenValues = 250;

/** A bucket fills by fractions of a token, whose sum may be less than a whole token by this much. */
const roundingError = 1e-6;

/**
 * Takes one token for each request from the partner's bucket, which all processes share. A request waits for at most
 * one reply from Redis, so no longer than `takeTokens` does. While Redis does not reply in time, each process enforces
 * its share of the limit. A partner therefore cannot exceed its limit by slowing Redis down, and events that can be
 * queued are not refused because a limit cannot be checked.
 *
 * @param options.processCount the number of processes that share the buckets, as far as known
 */
export function createPartnerLimiter(options: {
  app: PartnerFacingApp;
  takeTokens: TokenBuckets["take"];
  processCount: TokenBuckets["processCount"];
  logger: Logger;
  metrics: Registry;
}): PartnerLimiter {
  const { app, takeTokens, processCount, logger } = options;
  const requestsByShare = new Counter({
    name: `${app}_rate_limit_by_share_total`,
    help: "Requests limited by this process's share of their partner's limit, because Redis gave no tokens in time.",
    registers: [options.metrics],
  });
  // Keyed by object: each version of the partners file has new objects, so a changed limit starts with a full bucket.
  const buckets = new WeakMap<Partner, KnownBucket>();
  /** 0 while Redis gives tokens in time. */
  let tryAgainAtMs = 0;
  new Gauge({
    name: `${app}_rate_limit_shared`,
    help: "1 while all processes share the rate limits through Redis, 0 while this one enforces its share of them.",
    registers: [options.metrics],
    collect() {
      this.set(tryAgainAtMs === 0 ? 1 : 0);
    },
  });

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

  /** Takes tokens for all requests of one turn of the event loop. Requests of later turns do not wait for it. */
  async function takeFor(requests: number, partner: Partner): Promise<RateLimitVerdict[]> {
    const bucket = bucketOf(partner);
    const isTrial = tryAgainAtMs > 0;
    payByOverflow(bucket, partner, performance.now());
    // Calls in progress at the same time must not all take the tokens for it.
    const debt = bucket.takesUnderWay === 0 ? Math.ceil(bucket.owed) : 0;
    // Only one call in progress takes tokens in advance, or a slow Redis would make this process hold more than its
    // share.
    const wanted = debt + Math.max(requests, bucket.takesUnderWay === 0 ? takenAhead(partner.rateLimit) : 1);
    bucket.takesUnderWay += 1;
    try {
      const { granted, left, waitMs } = await takeTokens(partner.id, partner.rateLimit, wanted);
      // Ignores replies to calls from before another call failed, or a Redis of borderline speed would fill the log.
      if (isTrial) {
        tryAgainAtMs = 0;
        logger.info("rate limits are shared again");
      }
      // A debt that arose in the meantime is not paid before these requests pass: they did not know of it.
      bucket.held += granted - payDebt(bucket, Math.min(granted, debt));
      const passing = Math.min(bucket.held, requests);
      bucket.held -= passing;
      bucket.held -= payDebt(bucket, bucket.held);
      const nowMs = performance.now();
      // Redis does not know about requests accepted without it. The two differ only until the bucket is full again.
      bucket.left = Math.min(left, refill(bucket, partner, nowMs));
      bucket.leftAtMs = nowMs;
      if (granted < wanted) bucket.emptyUntilMs = nowMs + waitMs;
      const [passed, refused] = [pass(bucket), refusal(bucket, waitMs + timeToEarn(bucket.owed, partner))];
      return Array.from({ length: requests }, (_, place) => (place < passing ? passed : refused));
    } catch (error) {
      if (tryAgainAtMs === 0) {
        const processes = processCount();
        logger.warn(
          { err: error, processes },
          "rate limits are enforced per process: Redis provides no tokens in time",
        );
      }
      tryAgainAtMs = performance.now() + tryAgainMs;
      return Array.from({ length: requests }, () => judgeByShare(partner, bucket));
    } finally {
      bucket.takesUnderWay -= 1;
    }
  }

  /**
   * Decides with this process's estimate of the bucket. It fills at the partner's rate, and each request takes as many
   * tokens as there are processes, because the others accept requests too. The estimate is kept, so an unreliable Redis
   * does not give anybody a full bucket each time it fails.
   */
  function judgeByShare(partner: Partner, bucket: KnownBucket): RateLimitVerdict {
    requestsByShare.inc();
    const price = processCount();
    const nowMs = performance.now();
    payByOverflow(bucket, partner, nowMs);
    bucket.left = refill(bucket, partner, nowMs, price);
    bucket.leftAtMs = nowMs;
    const paid = Math.min(bucket.owed, bucket.left / price);
    bucket.left -= paid * price;
    bucket.owed -= paid;
    const missing = (bucket.owed + 1) * price - bucket.left;
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

  function chargePartner(partner: Partner, bytes: number, values: number): void {
    const tokens = Math.max(Math.ceil(bytes / tokenBytes), Math.ceil(Math.min(values, maxJsonValues) / tokenValues));
    // The first was spent before the payload was read.
    if (tokens <= 1) return;
    const bucket = bucketOf(partner);
    bucket.owed += tokens - 1;
    bucket.held -= payDebt(bucket, bucket.held);
  }

  return { limitPartner, chargePartner };
}

/** Pays with whole tokens; time may have paid a part of one. Returns how many of the tokens were needed. */
function payDebt(bucket: KnownBucket, tokens: number): number {
  const paid = Math.min(tokens, Math.ceil(bucket.owed));
  bucket.owed = Math.max(bucket.owed - paid, 0);
  return paid;
}

/**
 * Lets the tokens that a full bucket could not take pay debts. Otherwise a partner that waits as long as it was told
 * would still owe what exceeds the burst.
 */
function payByOverflow(bucket: KnownBucket, { rateLimit }: Partner, nowMs: number): void {
  const { perSecond, burst } = rateLimit;
  const overflow = bucket.left + ((nowMs - bucket.leftAtMs) * perSecond) / 1_000 - burst;
  if (bucket.owed === 0 || overflow <= 0) return;
  bucket.owed = Math.max(bucket.owed - overflow, 0);
  bucket.left = burst;
  bucket.leftAtMs = nowMs;
}

/** Milliseconds. */
function timeToEarn(tokens: number, { rateLimit }: Partner): number {
  return (tokens / rateLimit.perSecond) * 1_000;
}

/**
 * Returns the tokens in the bucket now. Its capacity is at least one request, or a share of less than one would refuse
 * everything.
 */
function refill({ left, leftAtMs }: KnownBucket, { rateLimit }: Partner, nowMs: number, price = 1): number {
  const { perSecond, burst } = rateLimit;
  return Math.min(left + ((nowMs - leftAtMs) * perSecond) / 1_000, Math.max(burst, price));
}

/** @param price the number of tokens that a request takes */
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
  const available = Math.max(held + Math.floor(left / price - owed + roundingError), 0);
  return { "RateLimit-Policy": policy, RateLimit: describeQuota(available, seconds) };
}
