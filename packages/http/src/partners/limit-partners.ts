import type { Partner } from "@booking-events/partners";
import type { TokenBuckets } from "@booking-events/queue";
import { Counter, DeadlineExceeded, Gauge, gatherPerTurn, type Logger, type Registry } from "@booking-events/runtime";
import { maxJsonValues } from "@booking-events/schema";
import { describePolicy, describeQuota } from "./rate-limit-headers.ts";

export interface RateLimitVerdict {
  /** undefined if the request is within its partner's limits. */
  retryAfterS?: number;
  /** Whether the partner has used up its bytes of today. Otherwise it has sent too many requests. */
  isOverQuota?: boolean;
  /** The headers of the answer, whatever else happens to the request. */
  headers: Readonly<Record<string, string>>;
}

interface KnownBucket {
  partner: Partner;
  /** Tokens that this process has taken from the bucket and not spent. */
  held: number;
  /**
   * The most tokens that the bucket can have had at `leftAtMs`: what Redis reported, less those of requests accepted
   * without it. Below zero, large payloads have cost more than there was.
   */
  left: number;
  leftAtMs: number;
  takesUnderWay: number;
  /** Takes a token from Redis, for a request that finds none held here. */
  takeToken: () => Promise<RateLimitVerdict>;
  policy: string;
  /** Of payloads that were accepted here and that Redis does not count yet. */
  uncountedBytes: number;
  /** What Redis last reported. */
  bytesToday: number;
  dayEndsAtMs: number;
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

/** Bytes of payloads are counted in Redis together with the next tokens that are taken, or after this time. */
const countIntervalMs = 1_000;

/** A bucket fills by fractions of a token, whose sum may be less than a whole token by this much. */
const roundingError = 1e-6;

/**
 * Takes one token for each request from the partner's bucket, which all processes share. A request waits for at most
 * one reply from Redis, so no longer than taking tokens may last. While Redis does not reply in time, each process
 * enforces its share of the limit. A partner therefore cannot exceed its limit by slowing Redis down, and events that
 * can be queued are not refused because a limit cannot be checked.
 */
export class PartnerLimiter {
  readonly #redis: Pick<TokenBuckets, "take" | "processCount">;
  readonly #logger: Logger;
  readonly #requestsByShare: Counter;
  readonly #shared: Gauge;
  /** Keyed by object: each version of the partners file has new objects, so a changed limit starts with a full bucket. */
  readonly #buckets = new WeakMap<Partner, KnownBucket>();
  /** The newest bucket of each partner. */
  readonly #newest = new Map<string, KnownBucket>();
  readonly #uncounted = new Set<KnownBucket>();
  #countTimer: NodeJS.Timeout | undefined;
  /** 0 while Redis gives tokens in time. */
  #tryAgainAtMs = 0;

  /** @param options.app the prefix of the metrics' names */
  constructor(options: {
    app: string;
    tokenBuckets: Pick<TokenBuckets, "take" | "processCount">;
    logger: Logger;
    metrics: Registry;
  }) {
    this.#redis = options.tokenBuckets;
    this.#logger = options.logger;
    this.#requestsByShare = new Counter({
      name: `${options.app}_rate_limit_by_share_total`,
      help: "Requests limited by this process's share of their partner's limit, because Redis gave no tokens in time.",
      registers: [options.metrics],
    });
    this.#shared = new Gauge({
      name: `${options.app}_rate_limit_shared`,
      help: "1 while all processes share the rate limits through Redis, 0 while this one enforces its share of them.",
      registers: [options.metrics],
    });
    this.#shared.set(1);
  }

  /**
   * Takes one token, before any work is done for the request.
   *
   * @param reserve how many tokens must be left for others, as far as this process knows
   */
  async take(partner: Partner, reserve = 0): Promise<RateLimitVerdict> {
    const bucket = this.#bucketOf(partner);
    if (isOverQuota(bucket)) return this.#refuseForToday(bucket);
    const short = reserve === 0 ? 0 : 1 + reserve - bucket.held - tokensAt(bucket, performance.now());
    if (short > roundingError) return this.#refuse(bucket, short);
    if (bucket.held > 0) {
      bucket.held -= 1;
      return this.#pass(bucket);
    }
    const nowMs = performance.now();
    if (this.#isShared) {
      // Others can only have taken more since Redis reported what was left.
      const missing = 1 - tokensAt(bucket, nowMs);
      if (missing > roundingError) return this.#refuse(bucket, missing);
    } else {
      if (nowMs < this.#tryAgainAtMs) return this.#judgeByShare(bucket);
      this.#tryAgainAtMs = nowMs + tryAgainMs;
    }
    return bucket.takeToken();
  }

  /**
   * Charges for a payload that was read, unless its size is ordinary. What is not held here is taken from the bucket at
   * once, even if that leaves it below zero. It refuses requests until it has a token again, whichever process gets
   * them. Refusing this one instead would let a partner over its limit get nothing accepted at all.
   *
   * @param values the number of JSON values: objects, arrays and scalars
   */
  charge(partner: Partner, bytes: number, values: number): void {
    const tokens = Math.max(Math.ceil(bytes / tokenBytes), Math.ceil(Math.min(values, maxJsonValues) / tokenValues));
    // The first was spent before the payload was read.
    if (tokens <= 1) return;
    const bucket = this.#bucketOf(partner);
    const debt = Math.max(tokens - 1 - bucket.held, 0);
    bucket.held -= tokens - 1 - debt;
    if (debt === 0) return;
    if (this.#isShared) void this.#takeFromRedis(bucket, 0, { debt });
    else this.#chargeShare(bucket, debt);
  }

  /** Counts an accepted payload towards its partner's quota. */
  count(partner: Partner, bytes: number): void {
    this.#countLater(this.#bucketOf(partner), bytes);
  }

  #countLater(bucket: KnownBucket, bytes: number): void {
    bucket.uncountedBytes += bytes;
    this.#uncounted.add(bucket);
    this.#countSoon();
  }

  #countSoon(): void {
    this.#countTimer ??= setTimeout(() => void this.#countAll(), countIntervalMs).unref();
  }

  /** What each partner has used of its quota, of those that this process knows. */
  *quotas(): Generator<{ partner: string; bytes: number; usedBytes: number }> {
    for (const [partner, bucket] of this.#newest) {
      yield { partner, bytes: bucket.partner.bytesPerDay, usedBytes: usedToday(bucket) };
    }
  }

  /** Counts in Redis what is not counted there yet. */
  async stop(): Promise<void> {
    await this.#countAll();
    clearTimeout(this.#countTimer);
  }

  async #countAll(): Promise<void> {
    this.#countTimer = undefined;
    const [first] = this.#uncounted;
    // A trial. No request may come that makes one.
    if (!this.#isShared && first !== undefined) await this.#takeFromRedis(first, 0, { ahead: 0 });
    // While Redis provides no tokens, they wait until it provides some again.
    if (!this.#isShared) return this.#countSoon();
    const buckets = [...this.#uncounted];
    this.#uncounted.clear();
    await Promise.all(
      buckets.map((bucket) => (bucket.uncountedBytes === 0 ? undefined : this.#takeFromRedis(bucket, 0, { ahead: 0 }))),
    );
  }

  get #isShared(): boolean {
    return this.#tryAgainAtMs === 0;
  }

  #bucketOf(partner: Partner): KnownBucket {
    const known = this.#buckets.get(partner);
    if (known !== undefined) return known;
    const bucket: KnownBucket = {
      partner,
      held: 0,
      left: partner.rateLimit.burst,
      leftAtMs: performance.now(),
      takesUnderWay: 0,
      // For all requests of one turn of the event loop together. Requests of later turns do not wait for it.
      takeToken: gatherPerTurn<void, RateLimitVerdict>((requests) => this.#takeFromRedis(bucket, requests.length)),
      policy: describePolicy(partner.rateLimit),
      uncountedBytes: 0,
      bytesToday: 0,
      dayEndsAtMs: Number.POSITIVE_INFINITY,
    };
    this.#buckets.set(partner, bucket);
    this.#newest.set(partner.id, bucket);
    return bucket;
  }

  async #takeFromRedis(
    bucket: KnownBucket,
    requests: number,
    { debt = 0, ahead = takenAhead(bucket.partner) } = {},
  ): Promise<RateLimitVerdict[]> {
    const { partner } = bucket;
    const isTrial = !this.#isShared;
    const bytes = isTrial ? 0 : bucket.uncountedBytes;
    // Only one call in progress takes tokens in advance, or a slow Redis would make this process hold more than its
    // share.
    const wanted = Math.max(requests, bucket.takesUnderWay === 0 ? ahead : 0);
    bucket.takesUnderWay += 1;
    bucket.uncountedBytes -= bytes;
    try {
      const taken = await this.#redis.take(partner.id, partner.rateLimit, wanted, debt, bytes);
      const { granted, left } = taken;
      // Ignores replies to calls from before another call failed, or a Redis of borderline speed would fill the log.
      if (isTrial) this.#shareAgain();
      bucket.held += granted;
      const nowMs = performance.now();
      // Redis does not know about requests accepted without it. The two differ only until the bucket is full again.
      setTokens(bucket, Math.min(left, tokensAt(bucket, nowMs)), nowMs);
      bucket.bytesToday = taken.bytesToday;
      bucket.dayEndsAtMs = nowMs + taken.dayEndsInS * 1_000;
      if (isOverQuota(bucket)) return new Array(requests).fill(this.#refuseForToday(bucket));
      const passing = Math.min(bucket.held, requests);
      bucket.held -= passing;
      const [passed, refused] = [this.#pass(bucket), this.#refuse(bucket, 1 - left)];
      return Array.from({ length: requests }, (_, place) => (place < passing ? passed : refused));
    } catch (error) {
      this.#stopSharing(error);
      // A Redis that is only late counts them all the same. Sent again, they would count twice.
      if (bytes > 0 && !(error instanceof DeadlineExceeded)) this.#countLater(bucket, bytes);
      this.#chargeShare(bucket, debt);
      return Array.from({ length: requests }, () => this.#judgeByShare(bucket));
    } finally {
      bucket.takesUnderWay -= 1;
    }
  }

  #shareAgain(): void {
    this.#tryAgainAtMs = 0;
    this.#shared.set(1);
    this.#logger.info("rate limits are shared again");
  }

  #stopSharing(error: unknown): void {
    if (this.#isShared) {
      this.#shared.set(0);
      this.#logger.warn(
        { err: error, processes: this.#redis.processCount() },
        "rate limits are enforced per process: Redis provides no tokens in time",
      );
    }
    this.#tryAgainAtMs = performance.now() + tryAgainMs;
  }

  /**
   * Decides with this process's estimate of the bucket. It fills at the partner's rate, and each request takes as many
   * tokens as there are processes, because the others accept requests too. The estimate is kept, so an unreliable Redis
   * does not give anybody a full bucket each time it fails.
   */
  #judgeByShare(bucket: KnownBucket): RateLimitVerdict {
    this.#requestsByShare.inc();
    const price = this.#price;
    const nowMs = performance.now();
    setTokens(bucket, tokensAt(bucket, nowMs, price), nowMs);
    const missing = price - bucket.left;
    if (missing > roundingError) return this.#refuse(bucket, missing);
    bucket.left = Math.max(-missing, 0);
    return this.#pass(bucket);
  }

  #chargeShare(bucket: KnownBucket, debt: number): void {
    const nowMs = performance.now();
    const price = this.#price;
    setTokens(bucket, tokensAt(bucket, nowMs, price) - debt * price, nowMs);
  }

  /** How many tokens of the bucket a request takes. */
  get #price(): number {
    return this.#isShared ? 1 : this.#redis.processCount();
  }

  #pass(bucket: KnownBucket): RateLimitVerdict {
    return { headers: this.#headersOf(bucket, 1) };
  }

  /** @param missing the number of tokens that must be added before a request passes */
  #refuse(bucket: KnownBucket, missing: number): RateLimitVerdict {
    const retryAfterS = Math.max(1, Math.ceil(missing / bucket.partner.rateLimit.perSecond));
    return { retryAfterS, headers: this.#headersOf(bucket, retryAfterS) };
  }

  #refuseForToday(bucket: KnownBucket): RateLimitVerdict {
    const retryAfterS = Math.max(1, Math.ceil((bucket.dayEndsAtMs - performance.now()) / 1_000));
    return { retryAfterS, isOverQuota: true, headers: this.#headersOf(bucket, 1) };
  }

  #headersOf({ policy, held, left }: KnownBucket, seconds: number): Record<string, string> {
    const available = Math.max(held + Math.floor(left / this.#price + roundingError), 0);
    return { "RateLimit-Policy": policy, RateLimit: describeQuota(available, seconds) };
  }
}

/** Requests that are under way may exceed the quota by what they bring. */
function isOverQuota(bucket: KnownBucket): boolean {
  const { bytesToday, uncountedBytes, partner } = bucket;
  // Whether the day has ended matters only then.
  return bytesToday + uncountedBytes >= partner.bytesPerDay && usedToday(bucket) >= partner.bytesPerDay;
}

function usedToday({ bytesToday, uncountedBytes, dayEndsAtMs }: KnownBucket): number {
  return uncountedBytes + (performance.now() < dayEndsAtMs ? bytesToday : 0);
}

function takenAhead({ rateLimit: { perSecond, burst } }: Partner): number {
  return Math.max(1, Math.floor(aheadShare * Math.min(perSecond, burst)));
}

/** The bucket's capacity is at least one request, or a share of less than one would refuse everything. */
function tokensAt({ partner, left, leftAtMs }: KnownBucket, nowMs: number, price = 1): number {
  const { perSecond, burst } = partner.rateLimit;
  return Math.min(left + ((nowMs - leftAtMs) * perSecond) / 1_000, Math.max(burst, price));
}

function setTokens(bucket: KnownBucket, left: number, nowMs: number): void {
  bucket.left = left;
  bucket.leftAtMs = nowMs;
}
