import { type Answer, answers } from "@booking-events/schema";
import { LRUCache } from "lru-cache";
import { toSender } from "./to-sender.ts";

/** Returns the answer to a request with a refused secret. */
export type AnswerGuess = (ip: string) => Answer;

export const guessLimits = {
  /**
   * Refused secrets from one address that get 403. A secret of 256 random bits needs no limit; this one makes each
   * further guess cost a connection, and still lets a partner whose secret has expired see the 403.
   */
  refusalsPerWindow: 200,
  /** Starts at the first refused secret. */
  windowMs: 60_000,
  /** Beyond this number, the least recently seen address is forgotten. Each takes about 100 bytes. */
  maxAddresses: 100_000,
};

/**
 * Counts the refused secrets of each address in this process. Requests with a valid secret are not counted or refused,
 * so a partner behind the same address is not affected.
 *
 * An attacker with many addresses gets more guesses, but that does not help against 256 random bits.
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
    if (count <= limits.refusalsPerWindow) return answers.invalidSecret;
    // At the end of the window the remaining time may be 0 although the limit still applies.
    return answers.tooManyGuesses(Math.max(1, Math.ceil(refusals.getRemainingTTL(sender) / 1_000)));
  };
}
