import { forEachShard, formatShards, setQueuePaused, valuesOf } from "@booking-events/queue";
import type { RedisServers } from "@booking-events/runtime";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../context.ts";
import { describeRedisError, readRedisSettings } from "../queue.ts";
import { CommandFailure } from "../terminal/command-failure.ts";
import { printLine } from "../terminal/print.ts";

export function addQueueCommands(program: Command, context: Context): void {
  const queue = program
    .command("queue")
    .summary("stop and start taking events from the queue")
    .description(
      "Stop and start taking events from the queue. Ingest accepts events all the time. While the queue is paused, " +
        "they wait in Redis, which ingest watches: it refuses events before Redis is full.",
    );
  queue
    .command("pause")
    .summary("let no worker take events")
    .description(
      "Let no worker take events, until the queue is resumed. Workers finish the events that they hold. New workers " +
        "take none either.",
    )
    .action(() => setPaused(context, true));
  queue
    .command("resume")
    .summary("let workers take events again")
    .description("Let workers take events again, in the order in which they came.")
    .action(() => setPaused(context, false));
}

async function setPaused({ environment, stdout }: Context, isPaused: boolean): Promise<void> {
  const settings = readRedisSettings(environment);
  const results = await forEachShard(settings, (location) => setQueuePaused({ ...location, isPaused }));
  const failed = results.filter((result) => "error" in result);
  if (failed[0] !== undefined) throw describeFailure(failed, results.length, settings.redisServers);
  const hasChanged = valuesOf(results).some(Boolean);
  const already = hasChanged ? "" : "already ";
  printLine(
    stdout,
    isPaused
      ? `The queue is ${already}paused. Events wait in Redis until: npm run ops -- queue resume`
      : `The queue is ${hasChanged ? "resumed" : "not paused"}. Workers take events.`,
  );
}

function describeFailure(
  failed: { shard: number; error: unknown }[],
  shardCount: number,
  redisServers: RedisServers,
): unknown {
  const error = describeRedisError(failed[0]?.error, redisServers);
  if (shardCount === 1 || !(error instanceof CommandFailure)) return error;
  const shards = formatShards(failed.map(({ shard }) => shard));
  return new CommandFailure(`Not changed: shards ${shards} of ${shardCount}. ${error.message} Run the command again.`, {
    cause: error,
  });
}
