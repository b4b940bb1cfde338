import { LRUCache } from "lru-cache";
import { type Answer, invalidSecret, tooManyGuesses } from "../http/answers.ts";
import { toSender } from "../log/to-sender.ts";

/** What a request gets whose secret was refused. */
export type AnswerGuess = (ip: string) => Answer;

export const guessLimits = {
  /**
   * Refused secrets from one address that are answered like the first. 256 random bits need no limit at all; this one
   * makes each further guess cost a connection, and lets a partner whose secret has expired see the honest answer.
   */
  refusalsPerWindow: 200,
  /** From the first of them. */
  windowMs: 60_000,
  /** Then the address that has been quiet for longest is forgotten. About 100 bytes each. */
  maxAddresses: 100_000,
};

/**
 * Counts the refused secrets of each address, in this process. A valid secret is never asked for its address, so that
 * a partner behind the same one gets through.
 *
 * Whoever has many addresses, or has them forgotten, gains tries at 256 random bits: nothing.
 */
export function createGuessThrottle(limits = guessLimits): AnswerGuess {
  const refusals = new LRUCache<string, number>({
    max: limits.maxAddresses,
    ttl: limits.windowMs,
    noUpdateTTL: true,
  });

  return function answerGuess(ip) {
    const sender = toSender(ip);
    const count = (refusals.get(sender) ?? 0) + 1;
    refusals.set(sender, count);
    if (count <= limits.refusalsPerWindow) return invalidSecret;
    // At the very end of the window nothing remains of it, and it is still in force.
    return tooManyGuesses(Math.max(1, Math.ceil(refusals.getRemainingTTL(sender) / 1_000)));
  };
}
