import { type RedisServers, withDeadline } from "@booking-events/runtime";
import type { Redis } from "ioredis";
import { leadsToUndisputedPrimary } from "../redis/connect-to-redis.ts";

/** The event could not be queued, or Redis did not confirm it in time. The message contains nothing of the event. */
export class EnqueueError extends Error {
  override name = "EnqueueError";
}

/** In an outage, partners get an answer within 2 s. This leaves time for the answer itself. */
export const enqueueDeadlineMs = 1_500;
/** Redis ends a wait up to 100 ms late. Its answer must arrive before the deadline. */
const answerMarginMs = 200;

/** Writes over a connection, and waits until Redis and its replicas have what was written. */
export class ConfirmedWrites {
  readonly #redis: Redis;
  readonly #redisServers: RedisServers;
  readonly #replicas: number;
  #connectionNumber = 0;
  #knowsWaitAof = true;

  constructor(redis: Redis, redisServers: RedisServers, replicas: number) {
    this.#redis = redis;
    this.#redisServers = redisServers;
    this.#replicas = replicas;
    redis.on("ready", () => {
      this.#connectionNumber += 1;
      this.#knowsWaitAof = true;
    });
  }

  /** Changes with each connection. */
  get connectionNumber(): number {
    return this.#connectionNumber;
  }

  /** Whether replicas can confirm anything now: no other server is taking the primary's place. */
  async canConfirm(): Promise<boolean> {
    return this.#replicas === 0 || leadsToUndisputedPrimary(this.#redis, this.#redisServers);
  }

  /**
   * @param deadlineMs when to give up, as a value of `performance.now()`
   * @throws EnqueueError
   */
  async run<Result>(
    write: () => Promise<Result>,
    deadlineMs: number = performance.now() + enqueueDeadlineMs,
  ): Promise<Result> {
    try {
      return await withDeadline(this.#writeAndConfirm(write, deadlineMs), msUntil(deadlineMs));
    } catch (error) {
      throw new EnqueueError("The event could not be queued, or Redis did not confirm it in time.", { cause: error });
    }
  }

  /**
   * ioredis sends an unanswered WAIT again over a new connection, and the replicas of another primary would confirm what
   * that one has. So it throws if the connection was replaced. It also throws while the primary is being replaced: the
   * server that takes its place may lack what another replica still confirms (docs/adr/durability-and-failover.md).
   */
  async #writeAndConfirm<Result>(write: () => Promise<Result>, deadlineMs: number): Promise<Result> {
    const connection = this.#connectionNumber;
    const result = await write();
    if (this.#replicas === 0) return result;
    const confirmed = await this.#countReplicas(msUntil(deadlineMs));
    if (confirmed < this.#replicas)
      throw new Error(`Only ${confirmed} of ${this.#replicas} replicas confirmed the events in time.`);
    if (!(await this.canConfirm()))
      throw new Error("The primary may be replaced, so what its replicas confirm can be lost.");
    if (connection !== this.#connectionNumber)
      throw new Error("The connection was replaced before replicas confirmed.");
    return result;
  }

  /** Redis 7.2 tells whether replicas have it on disk. Older ones tell whether they have it. */
  async #countReplicas(msLeft: number): Promise<number> {
    // Zero would wait without limit.
    const waitMs = Math.max(1, msLeft - answerMarginMs);
    if (this.#knowsWaitAof) {
      try {
        const [own, replicas] = (await this.#redis.call("WAITAOF", 1, this.#replicas, waitMs)) as [number, number];
        return own === 1 ? replicas : 0;
      } catch (error) {
        if (!(error instanceof Error && /^ERR unknown command|^NOPERM/i.test(error.message))) throw error;
        this.#knowsWaitAof = false;
      }
    }
    return await this.#redis.wait(this.#replicas, waitMs);
  }
}

function msUntil(deadlineMs: number): number {
  return Math.max(0, Math.ceil(deadlineMs - performance.now()));
}
