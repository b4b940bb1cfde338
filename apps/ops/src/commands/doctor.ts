import { styleText } from "node:util";
import { examineRedis, findSentinelProblems, forEachShard, readQueueRecord, valuesOf } from "@booking-events/queue";
import { splitHosts } from "@booking-events/runtime";
import { examineDatabase } from "@booking-events/store";
import type { Command } from "@commander-js/extra-typings";
import type { Context, Output } from "../context.ts";
import { describeDatabaseError, readDatabaseSettings, readStandbysToConfirm } from "../database.ts";
import { partnersPath } from "../partners-file.ts";
import { describeRedisError, readRedisSettings } from "../queue.ts";
import { CommandFailure } from "../terminal/command-failure.ts";
import { wrap } from "../terminal/format-table.ts";
import { printJson, printLine } from "../terminal/print.ts";
import { printable } from "../terminal/printable.ts";
import { type Check, problem } from "./doctor/check.ts";
import { checkDatabase } from "./doctor/check-database.ts";
import { checkFiles } from "./doctor/check-files.ts";
import { checkRedis, checkSentinels } from "./doctor/check-redis.ts";
import { joinShards } from "./doctor/join-shards.ts";

export function addDoctorCommand(program: Command, context: Context): void {
  program
    .command("doctor")
    .summary("check everything that could lose data or secrets")
    .description(
      "Check everything that could lose data or secrets: the settings of Redis and PostgreSQL, clocks, disks, files " +
        "and the expiry of secrets. It changes nothing, and says how to correct what it finds.",
    )
    .option("--json", "print a JSON array: name, state (ok, problem or unknown), detail, why, remedy")
    .addHelpText("after", "\nExit codes: 0: there is no problem; 1: there is one. Unknown: look at it yourself.")
    .action(async ({ json }) => {
      const [redis, database] = await Promise.all([examineRedisServer(context), examineDatabaseServer(context)]);
      const checks = [...redis, ...database, ...checkFiles(partnersPath(context), context.now())];
      if (json) printJson(context.stdout, checks);
      else for (const check of checks) printCheck(context.stdout, check);
      const problems = checks.filter(({ state }) => state === "problem").length;
      if (problems > 0) throw new CommandFailure(`Problems: ${problems}.`);
    });
}

async function examineRedisServer({ environment }: Context): Promise<Check[]> {
  const settings = readRedisSettings(environment);
  const { replicasToConfirm } = settings;
  const examinations = await forEachShard(settings, (location) => examineRedis({ ...location, replicasToConfirm }));
  const checks = examinations.map((result) =>
    examineServer(
      "Redis",
      async () => valuesOf([result]).flatMap((examination) => checkRedis(examination, settings)),
      (error) => describeRedisError(error, settings.redisServers),
    ),
  );
  const { redisServers } = settings;
  return [
    ...joinShards(await Promise.all(checks), examinations),
    ...checkSentinels(redisServers, await findSentinelProblems(redisServers)),
  ];
}

async function examineDatabaseServer({ environment }: Context): Promise<Check[]> {
  const settings = readDatabaseSettings(environment);
  // If Redis does not answer, another check says so.
  const record = await readQueueRecord(readRedisSettings(environment)).catch(() => null);
  return examineServer(
    "PostgreSQL",
    async () =>
      checkDatabase(
        await examineDatabase(settings, { standbysToConfirm: readStandbysToConfirm(environment) }),
        splitHosts(settings.databaseUrl).map((url) => new URL(url)),
        record,
      ),
    (error) => describeDatabaseError(error, settings),
  );
}

async function examineServer(
  server: string,
  examineIt: () => Promise<Check[]>,
  describe: (error: unknown) => unknown,
): Promise<Check[]> {
  try {
    return await examineIt();
  } catch (error) {
    const described = describe(error);
    if (!(described instanceof CommandFailure)) throw error;
    const subject = { name: `${server} answers`, why: "Nothing else of it can be checked." };
    return [problem(subject, described.message, "As it says.")];
  }
}

const width = 80;
const labels = { ok: "OK", problem: "PROBLEM", unknown: "UNKNOWN" };
const indent = " ".repeat(labels.problem.length + 2);

function printCheck(output: Output, { name, state, detail, why, remedy }: Check): void {
  const label = labels[state].padEnd(indent.length);
  const [first = "", ...others] = wrap(printable(`${name}: ${detail}`), width - indent.length);
  printLine(output, (state === "problem" ? styleText("bold", label, { stream: output }) : label) + first);
  const reasons = state === "ok" ? [] : wrap(why, width - indent.length);
  for (const line of [...others, ...reasons]) printLine(output, indent + line);
  // A command is not wrapped, so that it can be copied.
  if (remedy !== null) printLine(output, `${indent}→ ${printable(remedy)}`);
}
