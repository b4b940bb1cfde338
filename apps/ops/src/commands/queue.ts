import { changeQueue, forEachShard, formatShards, retryNow, type ShardResult } from "@booking-events/queue";
import type { RedisServers } from "@booking-events/runtime";
import { type Command, InvalidArgumentError } from "@commander-js/extra-typings";
import type { Context } from "../context.ts";
import { describeRedisError, readRedisSettings, withRedis } from "../queue.ts";
import { CommandFailure } from "../terminal/command-failure.ts";
import { describeCount } from "../terminal/describe.ts";
import { printJson, printLine } from "../terminal/print.ts";
import { addAttachCommand } from "./queue/attach.ts";

export function addQueueCommands(program: Command, context: Context): void {
  const queue = program
    .command("queue")
    .summary("stop and start taking events from the queue, and retry those that failed")
    .description(
      "Stop and start taking events from the queue, retry those that failed, and let the queue feed another database. " +
        "Ingest accepts events all the time. While the queue is paused, they wait in Redis, which ingest watches: it " +
        "refuses events before Redis is full.",
    );
  queue
    .command("pause")
    .summary("let no worker take events")
    .description(
      "Let no worker take events, until the queue is resumed. Workers finish the events that they hold. New workers " +
        "take none either, whatever the number of shards is then.",
    )
    .action(() => setPaused(context, true));
  queue
    .command("resume")
    .summary("let workers take events again")
    .description("Let workers take events again, in the order in which they came.")
    .action(() => setPaused(context, false));
  queue
    .command("retry-now")
    .summary("retry events that failed now, instead of up to four hours later")
    .description(
      "Let events that failed, and wait for their next attempt, be tried now, the oldest first. Do it once the cause is " +
        "fixed: each attempt is one of 15, and an event that fails the last becomes a dead letter. It is safe while " +
        "workers run, and to do it again.",
    )
    .option("--code <code>", "only those whose last attempt failed with this code, such as 23514", parseCode)
    .option("--json", "print one JSON object: retried, delayed (those that still wait for their next attempt)")
    .addHelpText("after", "\nWhy they failed: booking_events_attempts_failed_total, or the worker's log.")
    .action((options: RetryOptions) => retry(context, options));
  addAttachCommand(queue, context);
}

interface RetryOptions {
  code?: string;
  json?: true;
}

/** As a worker writes it: an SQLSTATE, or the name of an error or of a code. */
function parseCode(text: string): string {
  if (!/^\w+$/.test(text)) throw new InvalidArgumentError("A code is one word, such as 23514 or TypeError.");
  return text;
}

async function retry({ environment, stdout }: Context, { code, json }: RetryOptions): Promise<void> {
  const settings = readRedisSettings(environment);
  const results = await forEachShard(settings, (location) => retryNow({ ...location, code }));
  const counts = results.flatMap((result) => ("value" in result ? [result.value] : []));
  const retried = counts.reduce((sum, shard) => sum + shard.retried, 0);
  const delayed = counts.reduce((sum, shard) => sum + shard.delayed, 0);
  if (counts.length > 0 && json) printJson(stdout, { retried, delayed });
  else if (counts.length > 0) printLine(stdout, describeRetries({ retried, delayed }, code));
  throwIfAnyFailed(results, "Not retried", settings.redisServers);
}

function describeRetries({ retried, delayed }: { retried: number; delayed: number }, code: string | undefined): string {
  const ofCode = code === undefined ? "" : ` with the code ${code}`;
  const others = delayed === 0 ? "" : ` Still delayed: ${delayed.toLocaleString("en")}.`;
  return retried === 0
    ? `No event that failed${ofCode} waits for its next attempt.${others}`
    : `${describeCount(retried, "event")} that failed${ofCode} can be taken by workers now.${others}`;
}

async function setPaused(context: Context, isPaused: boolean): Promise<void> {
  const before = await withRedis(context, (queue) => changeQueue(queue, { isPaused }));
  const hasChanged = before.isPaused !== isPaused;
  const already = hasChanged ? "" : "already ";
  printLine(
    context.stdout,
    isPaused
      ? `The queue is ${already}paused. Events wait in Redis until: ops queue resume`
      : `The queue is ${hasChanged ? "resumed" : "not paused"}. Workers take events.`,
  );
}

/** @param what was not done, as the start of a sentence */
function throwIfAnyFailed(results: ShardResult<unknown>[], what: string, redisServers: RedisServers): void {
  const failed = results.filter((result) => "error" in result);
  if (failed[0] === undefined) return;
  const error = describeRedisError(failed[0].error, redisServers);
  if (results.length === 1 || !(error instanceof CommandFailure)) throw error;
  const shards = formatShards(failed.map(({ shard }) => shard));
  throw new CommandFailure(`${what}: shards ${shards} of ${results.length}. ${error.message} Run the command again.`, {
    cause: error,
  });
}
