import { type Consumer, formatShards, namingShards } from "@booking-events/queue";
import type { ClockWatch } from "@booking-events/runtime";
import type { QueueWatch } from "../shards/watch-queue.ts";
import type { DatabaseHealth } from "./database-health.ts";
import type { ReportedProblems } from "./reported-problems.ts";

type Shards = ReadonlyMap<
  number,
  { consumer: Pick<Consumer, "isConnected" | "connectionProblem">; isStuck: () => boolean }
>;

interface Queue {
  shards: Shards;
  watch: Pick<QueueWatch<never>, "hasLooked" | "problems">;
  clocks: ClockWatch;
}

/** Returns why the worker is not ready, in sentences for an operator. Empty: it is ready. */
export async function findProblems(
  { shards, watch, clocks }: Queue,
  { health, durability }: { health: DatabaseHealth; durability: ReportedProblems },
  signal: AbortSignal,
): Promise<string[]> {
  const databaseProblem = await health.findProblem();
  const problems = [
    ...(signal.aborted ? ["The worker is stopping."] : []),
    // An outage of some shards does not stop the others.
    ...(isAnyConnected(shards) ? [] : findRedisProblems(shards)),
    ...(databaseProblem === null ? [] : [databaseProblem]),
    ...durability.current,
    ...watch.problems,
    ...clocks.problems(),
    ...findStuckShards(shards),
  ];
  return problems.length > 0 || watch.hasLooked ? problems : ["Redis has not told yet which database the queue feeds."];
}

/** Returns what an operator should know of shards although the worker is ready. */
export function findShardWarnings(shards: Shards): string[] {
  return isAnyConnected(shards) ? findRedisProblems(shards) : [];
}

export function isAnyConnected(shards: Shards): boolean {
  return [...shards.values()].some(({ consumer }) => consumer.isConnected());
}

function findRedisProblems(shards: Shards): string[] {
  const problems = Array.from(shards, ([shard, { consumer }]): [number, string[]] => {
    const problem = consumer.connectionProblem();
    return [shard, problem === null ? [] : [problem]];
  });
  return namingShards(problems);
}

function findStuckShards(shards: Shards): string[] {
  const stuck = [...shards].filter(([, shard]) => shard.isStuck()).map(([number]) => number);
  if (stuck.length === 0) return [];
  const where = shards.size > 1 ? ` in shards ${formatShards(stuck)}` : "";
  return [`Events are waiting${where}, and none is finished. Restart this worker.`];
}
