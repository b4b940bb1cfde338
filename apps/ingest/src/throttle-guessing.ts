import ipaddr from "ipaddr.js";
import { LRUCache } from "lru-cache";
import { type Answer, invalidSecret, tooManyGuesses } from "./answers.ts";

/** What a request gets whose secret was refused. */
export type AnswerGuess = (ip: string) => Answer;

export const guessLimits = {
  /**
   * Refused secrets from one address that are answered like the first. 256 random bits need no limit at all; this one
   * keeps a stranger from filling the log, and lets a partner whose secret has expired see the honest answer.
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

/**
 * The part of an address that its sender can't choose: a whole IPv4 address, the first half of an IPv6 one. What is no
 * address came from a client that wrote X-Forwarded-For itself; all such share one count.
 */
function toSender(ip: string): string {
  if (!ipaddr.isValid(ip)) return "none";
  // An IPv4 client of a socket that listens for both comes as ::ffff:192.0.2.1.
  const address = ipaddr.process(ip);
  return address instanceof ipaddr.IPv6 ? address.parts.slice(0, 4).join(":") : address.toString();
}
