import { gatherPerTurn } from "@booking-events/queue";
import { Counter, type Logger, type Partner, type Registry } from "@booking-events/service";
import { describePolicy, describeQuota } from "./rate-limit-headers.ts";
import type { TokenBuckets } from "./token-buckets.ts";

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
  /** In the bucket, when we last looked. */
  left: number;
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

const unchecked: RateLimitVerdict = { headers: {} };

/**
 * One token for each request, out of a bucket per partner that all processes share. A request waits for one answer of
 * Redis at most, so for no longer than `takeTokens` does. While Redis gives no tokens in time, requests pass unchecked:
 * an event that can't be queued is refused soon enough, and one that can be should be.
 */
export function createPartnerLimiter(options: {
  takeTokens: TokenBuckets["take"];
  logger: Logger;
  metrics: Registry;
}): LimitPartner {
  const { takeTokens, logger } = options;
  const uncheckedRequests = new Counter({
    name: "ingest_rate_limit_unchecked_total",
    help: "Requests that passed without a look at their partner's limit, because Redis did not answer in time.",
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
      bucket = { held: 0, left: 0, emptyUntilMs: 0, takesUnderWay: 0, takeToken, policy };
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
        logger.info("rate limits are checked again");
      }
      const passing = Math.min(granted, requests);
      bucket.held += granted - passing;
      bucket.left = left;
      if (granted < wanted) bucket.emptyUntilMs = performance.now() + waitMs;
      const [passed, refused] = [pass(bucket), refusal(bucket, waitMs)];
      return Array.from({ length: requests }, (_, place) => (place < passing ? passed : refused));
    } catch (error) {
      if (tryAgainAtMs === 0) logger.warn({ err: error }, "rate limits are not checked: Redis gives no tokens in time");
      tryAgainAtMs = performance.now() + tryAgainMs;
      uncheckedRequests.inc(requests);
      return new Array<RateLimitVerdict>(requests).fill(unchecked);
    } finally {
      bucket.takesUnderWay -= 1;
    }
  }

  return async function limitPartner(partner) {
    const bucket = bucketOf(partner);
    if (bucket.held > 0) {
      bucket.held -= 1;
      return pass(bucket);
    }
    const nowMs = performance.now();
    if (nowMs < bucket.emptyUntilMs) return refusal(bucket, bucket.emptyUntilMs - nowMs);
    if (nowMs < tryAgainAtMs) {
      uncheckedRequests.inc();
      return unchecked;
    }
    if (tryAgainAtMs > 0) tryAgainAtMs = nowMs + tryAgainMs;
    return bucket.takeToken(partner);
  };
}

function pass(bucket: KnownBucket): RateLimitVerdict {
  return { headers: headersOf(bucket, 1) };
}

function refusal(bucket: KnownBucket, waitMs: number): RateLimitVerdict {
  const retryAfterS = Math.max(1, Math.ceil(waitMs / 1_000));
  return { retryAfterS, headers: headersOf(bucket, retryAfterS) };
}

function takenAhead({ perSecond, burst }: Partner["rateLimit"]): number {
  return Math.max(1, Math.floor(aheadShare * Math.min(perSecond, burst)));
}

function headersOf({ policy, held, left }: KnownBucket, seconds: number): Record<string, string> {
  return { "RateLimit-Policy": policy, RateLimit: describeQuota(held + left, seconds) };
}
