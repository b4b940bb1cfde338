import { type ActingContext, describeCount, pauseQueue, retryEventsNow } from "@booking-events/operations";
import { type Command, InvalidArgumentError } from "@commander-js/extra-typings";
import type { Context, Output } from "../context.ts";
import { actAs, byOption } from "../terminal/operator.ts";
import { printJson, printLine } from "../terminal/print.ts";
import { addAttachCommand } from "./queue/attach.ts";

export function addQueueCommands(program: Command, context: Context): void {
  const queue = program
    .command("queue")
    .description(
      "Stop and start taking events from the queue, retry those that failed, and let the queue feed another database. " +
        "Ingest accepts events all the time. While the queue is paused, they wait in Redis, which ingest watches: it " +
        "refuses events before Redis is full.",
    );
  queue
    .command("pause")
    .description(
      "Let no worker take events, until the queue is resumed. Workers finish the events that they hold. New workers " +
        "take none either, whatever the number of shards is then.",
    )
    .addOption(byOption())
    .action(({ by }) => setPaused(actAs(context, by), context.stdout, true));
  queue
    .command("resume")
    .description("Let workers take events again, in the order in which they came.")
    .addOption(byOption())
    .action(({ by }) => setPaused(actAs(context, by), context.stdout, false));
  queue
    .command("retry-now")
    .description(
      "Let events that failed, and wait for their next attempt, be tried now, the oldest first. Do it once the cause is " +
        "fixed: each attempt is one of 15, and an event that fails the last becomes a dead letter. It is safe while " +
        "workers run, and to do it again.",
    )
    .option("--code <code>", "only those whose last attempt failed with this code, such as 23514", parseCode)
    .addOption(byOption())
    .option("--json", "print one JSON object: retried, delayed (those that still wait for their next attempt)")
    .addHelpText("after", "\nWhy they failed: booking_events_attempts_failed_total, or the worker's log.")
    .action(async ({ code, by, json }) => {
      const { counts, failure } = await retryEventsNow(actAs(context, by), code);
      if (json) printJson(context.stdout, counts);
      else printLine(context.stdout, describeRetries(counts, code));
      if (failure !== null) throw failure;
    });
  addAttachCommand(queue, context);
}

/** As a worker writes it: an SQLSTATE, or the name of an error or of a code. */
function parseCode(text: string): string {
  if (!/^\w+$/.test(text)) throw new InvalidArgumentError("A code is one word, such as 23514 or TypeError.");
  return text;
}

function describeRetries({ retried, delayed }: { retried: number; delayed: number }, code: string | undefined): string {
  const ofCode = code === undefined ? "" : ` with the code ${code}`;
  const others = delayed === 0 ? "" : ` Still delayed: ${delayed.toLocaleString("en")}.`;
  return retried === 0
    ? `No event that failed${ofCode} waits for its next attempt.${others}`
    : `${describeCount(retried, "event")} that failed${ofCode} can be taken by workers now.${others}`;
}

async function setPaused(acting: ActingContext, stdout: Output, isPaused: boolean): Promise<void> {
  const hasChanged = await pauseQueue(acting, isPaused);
  const already = hasChanged ? "" : "already ";
  printLine(
    stdout,
    isPaused
      ? `The queue is ${already}paused. Events wait in Redis until: ops queue resume`
      : `The queue is ${hasChanged ? "resumed" : "not paused"}. Workers take events.`,
  );
}
