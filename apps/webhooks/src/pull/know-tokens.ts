import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { PullSubscription } from "@booking-events/store";

/** As `ops subscriptions add` makes them. */
const tokenPattern = /^[A-Za-z0-9_-]{43}$/;
/** While notifications are lost. */
const maxAgeMs = 5_000;
/** However many requests with unknown tokens come, PostgreSQL is asked no more often than this. */
const minIntervalMs = 250;

/**
 * Knows who may pull with which token. A stranger's requests cost PostgreSQL next to nothing, and subscribers need it
 * only for what they ask for.
 */
export class KnownTokens {
  readonly #read: () => Promise<PullSubscription[]>;
  #byDigest: ReadonlyMap<string, PullSubscription> = new Map();
  /** When the reading of what is known began, and the last one of all; by `performance.now()`. */
  #knownSinceMs = Number.NEGATIVE_INFINITY;
  #startedAtMs = Number.NEGATIVE_INFINITY;
  #changes = 0;
  #reading: Promise<void> | undefined;
  #next: Promise<void> | undefined;

  constructor(read: () => Promise<PullSubscription[]>) {
    this.#read = read;
  }

  /** Called when a subscription may have changed. */
  forget(): void {
    this.#changes += 1;
    this.#knownSinceMs = Number.NEGATIVE_INFINITY;
  }

  /**
   * @returns undefined if the token is not valid
   * @throws what reading throws
   */
  async find(token: string): Promise<PullSubscription | undefined> {
    if (!tokenPattern.test(token)) return undefined;
    const digest = createHash("sha256").update(token).digest("hex");
    // A token that is not known may be new.
    if (performance.now() - this.#knownSinceMs > maxAgeMs || !this.#byDigest.has(digest)) await this.#refresh();
    const found = this.#byDigest.get(digest);
    const isOld = found?.tokenSha256.toString("hex") !== digest;
    return isOld && (found?.previousKeyUntil ?? 0) < new Date() ? undefined : found;
  }

  /** Resolves when the subscriptions have been read by a statement that was sent after this call. */
  #refresh(): Promise<void> {
    this.#next ??= this.#readNext();
    return this.#next;
  }

  async #readNext(): Promise<void> {
    await this.#reading?.catch(() => {});
    await sleep(Math.max(0, this.#startedAtMs + minIntervalMs - performance.now()));
    this.#next = undefined;
    this.#reading = this.#readAll();
    await this.#reading;
  }

  async #readAll(): Promise<void> {
    const startedAtMs = performance.now();
    this.#startedAtMs = startedAtMs;
    const changes = this.#changes;
    const subscriptions = await this.#read();
    this.#byDigest = new Map(
      subscriptions.flatMap((subscription) =>
        [subscription.tokenSha256, subscription.previousTokenSha256]
          .filter((digest) => digest !== null)
          .map((digest) => [digest.toString("hex"), subscription]),
      ),
    );
    if (changes === this.#changes) this.#knownSinceMs = startedAtMs;
  }
}
