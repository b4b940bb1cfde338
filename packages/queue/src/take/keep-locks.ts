import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import { queueKeys } from "../events/queue-name.ts";
import { defineScript, runScript } from "../redis/run-script.ts";
import type { HeldEvents, HeldJob } from "./held-events.ts";

/** Limits how long Redis answers nobody else. */
const locksPerCall = 500;

/**
 * Does what BullMQ's `extendLocks` does, by PEXPIRE instead of SET, which Redis refuses when it has reached maxmemory.
 *
 * KEYS: the queue's stalled.
 * ARGV: the prefix of job keys, the duration of the locks (milliseconds); then each job's id and its lock's token.
 * Returns how many locks were lost.
 */
const renewLocksScript = defineScript(`
local lost = 0
for place = 3, #ARGV, 2 do
  local lock = ARGV[1] .. ARGV[place] .. ':lock'
  if redis.call('GET', lock) == ARGV[place + 1] then
    redis.call('PEXPIRE', lock, ARGV[2])
    redis.call('SREM', KEYS[1], ARGV[place])
  else
    lost = lost + 1
  end
end
return lost
`);

/**
 * Renews the locks of the events that a process holds until the signal aborts, instead of BullMQ's workers. Those wait
 * up to half of a lock's duration, which is the interval of the search for stalled events. A live worker could then
 * seem dead, and the events of a dead worker would have to wait for it (`move-stalled-events.ts`).
 */
export async function keepLocks(options: {
  held: HeldEvents;
  redis: Redis;
  prefix: string;
  lockDurationMs: number;
  onError: (error: Error) => void;
  signal: AbortSignal;
}): Promise<void> {
  const { held, redis, prefix, lockDurationMs, onError, signal } = options;
  const queueKey = queueKeys(prefix);
  // Two renewals may fail before a lock expires.
  const intervalMs = lockDurationMs / 4;

  function renew(jobs: HeldJob[]): Promise<number> {
    const args = jobs.flatMap(({ id = "", token = "" }) => [id, token]);
    return runScript<number>(redis, renewLocksScript, [queueKey("stalled")], [queueKey(""), lockDurationMs, ...args]);
  }

  for (;;) {
    const isOver = await sleep(intervalMs, false, { signal, ref: false }).catch(() => true);
    if (isOver) return;
    // A busy worker finishes its events long before their locks need renewal.
    if (held.longestHeldMs() < intervalMs) continue;
    const jobs = [...held.locked()];
    const chunks = Array.from({ length: Math.ceil(jobs.length / locksPerCall) }, (_, index) =>
      jobs.slice(index * locksPerCall, (index + 1) * locksPerCall),
    );
    try {
      const lost = (await Promise.all(chunks.map(renew))).reduce((total, count) => total + count, 0);
      if (lost > 0) onError(new Error(`${lost} events have lost their locks: others may have them too.`));
    } catch (error) {
      onError(error instanceof Error ? error : new Error("The locks could not be renewed.", { cause: error }));
    }
  }
}
