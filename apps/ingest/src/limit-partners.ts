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
interface Wallet {
  /** Tokens that were taken out of the bucket and not spent yet. */
  held: number;
  /** In the bucket, when we last looked. */
  left: number;
  /** No token is there before this time. */
  emptyUntilMs: number;
  /** Requests that wait for the refill. */
  waiting: number;
  refill: Promise<void> | undefined;
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
 * One token for each request, out of a bucket per partner that all processes share. While Redis gives none in time,
 * requests pass unchecked: an event that can't be queued is refused soon enough, and one that can be should be.
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
  // By the object, which is a new one in each version of the partners file: a changed limit begins with a new wallet.
  const wallets = new WeakMap<Partner, Wallet>();
  let tryAgainAtMs = 0;

  function walletOf(partner: Partner): Wallet {
    let wallet = wallets.get(partner);
    if (wallet === undefined) {
      const policy = describePolicy(partner.rateLimit);
      wallet = { held: 0, left: 0, emptyUntilMs: 0, waiting: 0, refill: undefined, policy };
      wallets.set(partner, wallet);
    }
    return wallet;
  }

  /** One at a time for each partner, for all requests that wait for it. */
  async function refill(wallet: Wallet, { id, rateLimit }: Partner): Promise<void> {
    const wanted = Math.max(wallet.waiting, takenAhead(rateLimit));
    try {
      const { granted, left, waitMs } = await takeTokens(id, rateLimit, wanted);
      wallet.held += granted;
      wallet.left = left;
      if (granted < wanted) wallet.emptyUntilMs = performance.now() + waitMs;
      if (tryAgainAtMs > 0) logger.info("rate limits are checked again");
      tryAgainAtMs = 0;
    } catch (error) {
      if (tryAgainAtMs === 0) logger.warn({ err: error }, "rate limits are not checked: Redis gives no tokens in time");
      tryAgainAtMs = performance.now() + tryAgainMs;
    }
  }

  async function waitForRefill(wallet: Wallet, partner: Partner): Promise<void> {
    wallet.waiting += 1;
    wallet.refill ??= refill(wallet, partner).finally(() => {
      wallet.refill = undefined;
    });
    await wallet.refill;
    wallet.waiting -= 1;
  }

  return async function limitPartner(partner) {
    const wallet = walletOf(partner);
    // A refill serves those who waited when it was asked for, so nobody waits for more than two.
    for (;;) {
      const nowMs = performance.now();
      if (wallet.held > 0) {
        wallet.held -= 1;
        return { headers: headersOf(wallet, 1) };
      }
      if (nowMs < wallet.emptyUntilMs) {
        const retryAfterS = Math.ceil((wallet.emptyUntilMs - nowMs) / 1_000);
        return { retryAfterS, headers: headersOf(wallet, retryAfterS) };
      }
      if (nowMs < tryAgainAtMs) {
        uncheckedRequests.inc();
        return unchecked;
      }
      await waitForRefill(wallet, partner);
    }
  };
}

function takenAhead({ perSecond, burst }: Partner["rateLimit"]): number {
  return Math.max(1, Math.floor(aheadShare * Math.min(perSecond, burst)));
}

function headersOf({ policy, held, left }: Wallet, seconds: number): Record<string, string> {
  return { "RateLimit-Policy": policy, RateLimit: describeQuota(held + left, seconds) };
}
