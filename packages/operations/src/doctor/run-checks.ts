import { examineRedis, findSentinelProblems, forEachShard, readQueueRecord, valuesOf } from "@booking-events/queue";
import { splitHosts } from "@booking-events/runtime";
import { examineDatabase } from "@booking-events/store";
import type { Context } from "../context.ts";
import { describeDatabaseError, readDatabaseSettings, readStandbysToConfirm } from "../services/database.ts";
import { partnersPath } from "../services/partners-file.ts";
import { describeRedisError, readRedisSettings } from "../services/queue.ts";
import { read } from "../status/read-status.ts";
import { type Check, problem } from "./check.ts";
import { checkDatabase } from "./check-database.ts";
import { checkFiles } from "./check-files.ts";
import { checkRedis, checkSentinels } from "./check-redis.ts";
import { joinShards } from "./join-shards.ts";

/** Checks everything that could lose data or secrets. */
export async function runChecks(context: Context): Promise<Check[]> {
  const [redis, database] = await Promise.all([examineRedisServer(context), examineDatabaseServer(context)]);
  return [...redis, ...database, ...checkFiles(partnersPath(context), context.now())];
}

async function examineRedisServer({ environment }: Context): Promise<Check[]> {
  const settings = readRedisSettings(environment);
  const { redisServers, replicasToConfirm } = settings;
  const examinations = await forEachShard(settings, (location) => examineRedis({ ...location, replicasToConfirm }));
  const checks = examinations.map((result) =>
    checkServer(
      "Redis",
      async () => valuesOf([result]).flatMap((examination) => checkRedis(examination, settings)),
      (error) => describeRedisError(error, redisServers),
    ),
  );
  return [
    ...joinShards(await Promise.all(checks), examinations),
    ...checkSentinels(redisServers, await findSentinelProblems(redisServers)),
  ];
}

async function examineDatabaseServer({ environment }: Context): Promise<Check[]> {
  const settings = readDatabaseSettings(environment);
  // If Redis does not answer, another check says so.
  const record = await readQueueRecord(readRedisSettings(environment)).catch(() => null);
  const urls = splitHosts(settings.databaseUrl).map((url) => new URL(url));
  const standbysToConfirm = readStandbysToConfirm(environment);
  return checkServer(
    "PostgreSQL",
    async () => checkDatabase(await examineDatabase(settings, { standbysToConfirm }), urls, record),
    (error) => describeDatabaseError(error, settings),
  );
}

async function checkServer(
  server: string,
  check: () => Promise<Check[]>,
  describe: (error: unknown) => unknown,
): Promise<Check[]> {
  const checks = await read(check(), describe);
  if ("value" in checks) return checks.value;
  const subject = { name: `${server} answers`, why: "Nothing else of it can be checked." };
  return [problem(subject, checks.problem, "As it says.")];
}
