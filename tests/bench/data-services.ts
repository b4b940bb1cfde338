import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startPostgres, startRedis } from "@booking-events/scripts/services";
import { Redis } from "ioredis";
import pg from "pg";

/** A Redis and a PostgreSQL for one scenario, as durable as in production. */
export interface DataServices {
  redisUrl: string;
  redisPid: number;
  postgresPid: number;
  redis: Redis;
  /** Connected as the administrator. */
  postgres: pg.Client;
  /** Deletes everything in Redis and truncates its append-only file. */
  emptyRedis(): Promise<void>;
  /** Runs the work with a new, empty database, and drops that afterwards. */
  withDatabase<Result>(work: (database: BenchDatabase) => Promise<Result>): Promise<Result>;
  stop(): Promise<void>;
}

export interface BenchDatabase {
  url: string;
  query<Row extends object>(sql: string): Promise<Row[]>;
}

const rewritePollMs = 10;

export async function startDataServices(
  dir: string,
  { postgresSettings, signal }: { postgresSettings: Readonly<Record<string, string>>; signal: AbortSignal },
): Promise<DataServices> {
  const redisServer = await startRedis({ dir: join(dir, "redis"), signal });
  const postgresServer = await startPostgres({ dir: join(dir, "postgres"), settings: postgresSettings, signal });
  const redis = new Redis(redisServer.url);
  // A rewrite of the append-only file takes a CPU, and would fall into some measurements only.
  await redis.config("SET", "auto-aof-rewrite-percentage", "0");
  const postgres = new pg.Client({ connectionString: postgresServer.url });
  await postgres.connect();
  let databases = 0;

  return {
    redisUrl: redisServer.url,
    redisPid: redisServer.pid,
    postgresPid: postgresServer.pid,
    redis,
    postgres,
    async emptyRedis() {
      await redis.flushall();
      await redis.bgrewriteaof();
      while (/aof_rewrite_(in_progress|scheduled):1/.test(await redis.info("persistence"))) {
        await sleep(rewritePollMs, undefined, { signal });
      }
    },
    async withDatabase(work) {
      databases += 1;
      const name = `bench_${databases}`;
      await postgres.query(`create database ${name}`);
      const url = Object.assign(new URL(postgresServer.url), { pathname: `/${name}` }).href;
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      try {
        return await work({
          url,
          query: async <Row extends object>(sql: string) => (await client.query<Row>(sql)).rows,
        });
      } finally {
        await client.end();
        await postgres.query(`drop database ${name} with (force)`);
      }
    },
    async stop() {
      redis.disconnect();
      await postgres.end();
      await Promise.all([redisServer.stop(), postgresServer.stop()]);
      // If root runs the benchmark, it is not in `dir`.
      await rm(postgresServer.home, { recursive: true, force: true });
    },
  };
}
