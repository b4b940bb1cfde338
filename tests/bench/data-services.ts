import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startPostgres, startRedis } from "@booking-events/scripts/services";
import { Redis } from "ioredis";
import pg from "pg";

/** A Redis and a PostgreSQL of the run's own, as durable as production's. */
export interface DataServices {
  redisUrl: string;
  redisPid: number;
  postgresPid: number;
  redis: Redis;
  /** Deletes all that is in Redis, and lets its append-only file begin anew. */
  emptyRedis(): Promise<void>;
  /** A new, empty database. PostgreSQL's other ones stay as they are. */
  createDatabase(): Promise<BenchDatabase>;
  versions(): Promise<{ redis: string; postgres: string }>;
  stop(): Promise<void>;
}

export interface BenchDatabase {
  url: string;
  query<Row extends object>(sql: string): Promise<Row[]>;
  drop(): Promise<void>;
}

const rewriteLookMs = 10;

export async function startDataServices(dir: string, signal: AbortSignal): Promise<DataServices> {
  const redisServer = await startRedis({ dir: join(dir, "redis"), signal });
  const postgresServer = await startPostgres({ dir: join(dir, "postgres"), signal });
  const redis = new Redis(redisServer.url);
  // A rewrite of the append-only file takes a CPU, and would begin in the middle of some measurements.
  await redis.config("SET", "auto-aof-rewrite-percentage", "0");
  const admin = new pg.Client({ connectionString: postgresServer.url });
  await admin.connect();
  let databases = 0;

  return {
    redisUrl: redisServer.url,
    redisPid: redisServer.pid,
    postgresPid: postgresServer.pid,
    redis,
    async emptyRedis() {
      await redis.flushall();
      await redis.bgrewriteaof();
      while (/aof_rewrite_(in_progress|scheduled):1/.test(await redis.info("persistence"))) {
        await sleep(rewriteLookMs, undefined, { signal });
      }
    },
    async createDatabase() {
      databases += 1;
      const name = `bench_${databases}`;
      await admin.query(`create database ${name}`);
      const url = new URL(postgresServer.url);
      url.pathname = `/${name}`;
      const client = new pg.Client({ connectionString: url.href });
      await client.connect();
      return {
        url: url.href,
        query: async <Row extends object>(sql: string) => (await client.query<Row>(sql)).rows,
        async drop() {
          await client.end();
          await admin.query(`drop database ${name} with (force)`);
        },
      };
    },
    async versions() {
      const [, redisVersion = "?"] = /redis_version:(\S+)/.exec(await redis.info("server")) ?? [];
      const { rows } = await admin.query<{ server_version: string }>("show server_version");
      return { redis: redisVersion, postgres: rows[0]?.server_version ?? "?" };
    },
    async stop() {
      redis.disconnect();
      await admin.end();
      await Promise.all([redisServer.stop(), postgresServer.stop()]);
    },
  };
}
