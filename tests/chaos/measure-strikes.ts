import { createHash } from "node:crypto";
import type { Strike } from "./machine-faults.ts";
import type { Attempt, Post } from "./post-events.ts";

/** What a kind of fault did to partners and to the worker. */
export interface MachineFaultReport {
  name: string;
  count: number;
  /** How long all events of a shard were refused, or had no answer, at the longest. */
  longestRefusalMs: number;
  /** How long no event was applied, at the longest. */
  longestPauseMs: number;
}

/** @param appliedAtMs when events were seen to have been applied */
export function measureStrikes(
  strikes: readonly Strike[],
  posts: readonly Post[],
  appliedAtMs: readonly number[],
  shards: number,
): MachineFaultReport[] {
  const attemptsByShard = [...Map.groupBy(posts, (post) => shardOf(post, shards)).values()].map((ofShard) =>
    ofShard.flatMap(({ attempts }) => attempts),
  );
  return [...Map.groupBy(strikes, ({ name }) => name)].map(([name, same]) => ({
    name,
    count: same.length,
    longestRefusalMs: Math.round(
      Math.max(0, ...same.flatMap((strike) => attemptsByShard.map((attempts) => measureRefusal(strike, attempts)))),
    ),
    longestPauseMs: Math.round(Math.max(...same.map((strike) => measurePause(strike, appliedAtMs)))),
  }));
}

/** From an attempt that failed to the answer of the first attempt after it that did not. */
function measureRefusal({ startedAtMs, endedAtMs }: Strike, attempts: readonly Attempt[]): number {
  const sorted = attempts.toSorted((a, b) => a.sentAtMs - b.sentAtMs);
  let longest = 0;
  let answeredAtMs = sorted.at(-1)?.endedAtMs ?? 0;
  for (const { sentAtMs, endedAtMs: attemptEndedAtMs, end } of sorted.toReversed()) {
    if (end.result === "acknowledged") answeredAtMs = attemptEndedAtMs;
    else if (sentAtMs >= startedAtMs && sentAtMs < endedAtMs) longest = Math.max(longest, answeredAtMs - sentAtMs);
  }
  return longest;
}

function measurePause({ startedAtMs, endedAtMs }: Strike, appliedAtMs: readonly number[]): number {
  const during = appliedAtMs.filter((atMs) => atMs > startedAtMs && atMs < endedAtMs);
  const ends = [startedAtMs, ...during, endedAtMs];
  return Math.max(...ends.slice(1).map((atMs, index) => atMs - (ends[index] ?? atMs)));
}

/** Written down here a second time, so that a mistake in the service does not hide one in its measurement. */
function shardOf({ partner, reference }: Post, shards: number): number {
  const text = reference.replace(/^consumer /, "");
  const digest = createHash("sha256").update(`${partner}\0${text}`).digest();
  // The last of 96 bits, which are 16 characters of base64url.
  return (digest[11] ?? 0) % shards;
}
