import type { Redis } from "ioredis";

/** Redis ends a wait up to 100 ms late. Its answer must arrive before the deadline. */
const answerMarginMs = 200;

/**
 * Returns a function that waits until replicas have all that was written over this connection before. It throws if they
 * are fewer than needed, or if the connection was replaced since `connection`: ioredis sends an unanswered WAIT again,
 * and the replicas of another primary would confirm what that one has. It also throws while the primary is being
 * replaced: the server that takes its place may lack what another replica still confirms.
 *
 * @param needed how many replicas must confirm; 0: the function does nothing
 * @param options.connectionNumber returns a number that changes with each connection
 * @param options.isUndisputed whether no other server is taking the primary's place
 */
export function createReplicaConfirmation(
  redis: Redis,
  needed: number,
  { connectionNumber, isUndisputed }: { connectionNumber: () => number; isUndisputed: () => Promise<boolean> },
): (connection: number, waitMs: number) => Promise<void> {
  let knowsWaitAof = true;
  redis.on("ready", () => {
    knowsWaitAof = true;
  });

  /** Redis 7.2 tells whether replicas have it on disk. Older ones tell whether they have it. */
  async function countReplicas(waitMs: number): Promise<number> {
    if (knowsWaitAof) {
      try {
        const [own, replicas] = (await redis.call("WAITAOF", 1, needed, waitMs)) as [number, number];
        return own === 1 ? replicas : 0;
      } catch (error) {
        if (!(error instanceof Error && /^ERR unknown command|^NOPERM/i.test(error.message))) throw error;
        knowsWaitAof = false;
      }
    }
    return await redis.wait(needed, waitMs);
  }

  return async function confirm(connection, waitMs) {
    if (needed === 0) return;
    // Zero would wait without limit.
    const replicas = await countReplicas(Math.max(1, Math.floor(waitMs - answerMarginMs)));
    if (replicas < needed) throw new Error(`Only ${replicas} of ${needed} replicas confirmed the events in time.`);
    if (!(await isUndisputed()))
      throw new Error("The primary may be replaced, so what its replicas confirm can be lost.");
    if (connection !== connectionNumber()) throw new Error("The connection was replaced before replicas confirmed.");
  };
}
