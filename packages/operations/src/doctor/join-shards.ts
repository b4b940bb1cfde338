import { formatShards, type RedisExamination, type ShardResult } from "@booking-events/queue";
import { type Check, ok, problem } from "./check.ts";

/** Clocks that are synchronized by NTP differ by less. */
const maxSkewMs = 100;

/**
 * Shows what was found of several shards once, with their numbers unless it is the same for all.
 *
 * @param checks those of each shard
 */
export function joinShards(checks: Check[][], examinations: ShardResult<RedisExamination>[]): Check[] {
  const [first, ...others] = checks;
  if (first !== undefined && others.length === 0) return first;
  const found = new Map<string, { check: Check; shards: number[] }>();
  for (const [shard, ofShard] of checks.entries())
    for (const check of ofShard) {
      const key = JSON.stringify(check);
      const shards = found.get(key)?.shards ?? [];
      found.set(key, { check, shards: [...shards, shard] });
    }
  const joined = Array.from(found.values(), ({ check, shards }) =>
    shards.length === checks.length ? check : { ...check, detail: `shards ${formatShards(shards)}: ${check.detail}` },
  );
  return [...joined, checkSkew(examinations.flatMap((result) => ("value" in result ? [result.value] : [])))];
}

function checkSkew(examinations: RedisExamination[]): Check {
  const subject = {
    name: "The clocks of the shards agree",
    why: "While QUEUE_SHARDS is changed, events of a booking get their sequence numbers in two shards.",
  };
  const ahead = examinations.map(({ clockAheadMs }) => clockAheadMs);
  const skewMs = examinations.length === 0 ? 0 : Math.max(...ahead) - Math.min(...ahead);
  const errorMs = Math.max(0, ...examinations.map(({ clockErrorMs }) => clockErrorMs));
  const detail = `${skewMs.toFixed(1)} ms apart, measured to within ${(2 * errorMs).toFixed(1)} ms`;
  return skewMs - 2 * errorMs <= maxSkewMs
    ? ok(subject, detail)
    : problem(subject, detail, "On the hosts with the wrong clocks: timedatectl set-ntp true");
}
