import { setTimeout as sleep } from "node:timers/promises";
import { findConcerns, type Reading, readStatus, type Status } from "@booking-events/operations";
import { version } from "@booking-events/runtime";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../context.ts";
import { CommandFailure } from "../terminal/command-failure.ts";
import { printJson, printLine } from "../terminal/print.ts";
import { toJsonLine } from "../terminal/printable.ts";
import { printStatus } from "./status/print-status.ts";

const watchIntervalMs = 2_000;
const clearScreen = "\u001b[H\u001b[2J";

export function addStatusCommand(program: Command, context: Context): void {
  program
    .command("status")
    .description(
      "Show on one screen whether events get through: Redis, PostgreSQL, the queue, workers, partners, dead letters, " +
        "and what needs attention. It works if Redis or PostgreSQL is down, and takes some seconds at most.",
    )
    .option("--watch", "show it again every two seconds, until Ctrl-C")
    .option("--json", "print one JSON object: at, version, queue, database, lastHeardOf, quotas, needsAttention")
    .addHelpText(
      "after",
      `
The rates are of events that were applied. A partner counts as silent if it has sent nothing for more than an hour, and
for more than twice as long as its longest pause in the week before, as far as a sample of the log shows. Give it ingest's
REDIS_MEMORY_HIGH_WATER.

Exit codes: 0: nothing needs attention; 1: something does.`,
    )
    .action(({ watch, json }) => (watch ? showAgainAndAgain(context, json) : showOnce(context, json)));
}

async function showOnce(context: Context, json: true | undefined): Promise<void> {
  const { status, concerns } = await look(context);
  if (json) printJson(context.stdout, toJson(status, concerns));
  else printStatus(context.stdout, status, concerns);
  if (concerns.length > 0) throw new CommandFailure(`Needs attention: ${concerns.length}.`);
}

async function showAgainAndAgain(context: Context, json: true | undefined): Promise<never> {
  const { stdout } = context;
  context.endWithReader();
  for (; ; await sleep(watchIntervalMs)) {
    const { status, concerns } = await look(context);
    if (stdout.isTTY && !json) stdout.write(clearScreen);
    if (json) printLine(stdout, toJsonLine(toJson(status, concerns)));
    else printStatus(stdout, status, concerns);
    if (!stdout.isTTY && !json) printLine(stdout);
  }
}

async function look(context: Context) {
  const status = await readStatus(context);
  return { status, concerns: findConcerns(status).map(({ text }) => text) };
}

function toJson({ at, queue, database, lastHeardOf, quotas }: Status, concerns: string[]): unknown {
  return {
    at,
    version,
    queue: toJsonReading(queue, ({ lastUses: _, drainMs, ...value }) => ({
      ...value,
      // JSON has no infinity.
      drainMs: drainMs !== null && Number.isFinite(drainMs) ? drainMs : null,
    })),
    database: toJsonReading(database, (value) => value),
    lastHeardOf: Object.fromEntries(lastHeardOf),
    quotas,
    needsAttention: concerns,
  };
}

function toJsonReading<Value>(reading: Reading<Value>, toValue: (value: Value) => unknown): unknown {
  return "value" in reading ? toValue(reading.value) : reading;
}
