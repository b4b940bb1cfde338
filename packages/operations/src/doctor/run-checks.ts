import { examineRedis, findSentinelProblems, forEachShard, readQueueRecord, valuesOf } from "@booking-events/queue";
import { splitHosts } from "@booking-events/runtime";
import { examineDatabase } from "@booking-events/store";
import type { Context } from "../context.ts";
import { OperationFailure } from "../operation-failure.ts";
import { describeDatabaseError, readDatabaseSettings, readStandbysToConfirm } from "../services/database.ts";
import { partnersPath } from "../services/partners-file.ts";
import { describeRedisError, readRedisSettings } from "../services/queue.ts";
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
    if (!(described instanceof OperationFailure)) throw error;
    const subject = { name: `${server} answers`, why: "Nothing else of it can be checked." };
    return [problem(subject, described.message, "As it says.")];
  }
}
