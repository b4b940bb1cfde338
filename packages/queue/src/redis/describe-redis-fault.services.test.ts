import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort, waitFor } from "@booking-events/harness";
import type { RedisServers } from "@booking-events/runtime";
import { type DataServer, startRedis } from "@booking-events/scripts/services";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { connectFailingFast } from "./connect-to-redis.ts";
import { describeRedisFault } from "./describe-redis-fault.ts";
import { sharePrimaries } from "./primaries.ts";
import { watchOutage } from "./watch-outage.ts";
import { withConnection } from "./with-connection.ts";

const secret = "canary";
let folder: string;
let server: DataServer;
let admin: Redis;
const cleanups: (() => unknown)[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "booking-events-refusals-"));
  server = await startRedis({ dir: folder });
  admin = new Redis(server.url);
  await admin.call("ACL", "SETUSER", "stranger", "on", `>${secret}`, "resetkeys", "+info", "+client|setname");
});

afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
});

afterAll(async () => {
  admin?.disconnect();
  await server?.stop();
  await rm(folder, { recursive: true, force: true });
});

const as = (user: string, password: string, scheme = "redis") =>
  `${scheme}://${user}:${password}@${new URL(server.url).host}`;

/** A server that says one thing: to each new connection, or to each command but the first ones. */
async function startSaying(reply: string, when: "at once" | "to commands"): Promise<string> {
  const fake: Server = createServer((socket) => {
    socket.on("error", () => {});
    if (when === "at once") socket.end(`-${reply}\r\n`);
    else socket.on("data", (data) => socket.write(`-${reply}\r\n`.repeat(String(data).match(/^\*\d/gm)?.length ?? 1)));
  });
  const port = await freePort();
  await new Promise<void>((resolve) => fake.listen(port, "127.0.0.1", resolve));
  cleanups.push(() => fake.close());
  return `redis://127.0.0.1:${port}`;
}

/** Sets a setting of Redis until the end of the test. */
async function set(name: string, value: string): Promise<void> {
  const [, before = ""] = (await admin.config("GET", name)) as string[];
  await admin.config("SET", name, value);
  cleanups.push(() => admin.config("SET", name, before));
}

const cases: [name: string, prepare: () => Promise<RedisServers>, expected: RegExp][] = [
  [
    "a wrong password",
    async () => as("stranger", `${secret}-wrong`),
    /^refuses: "WRONGPASS .+ disabled"\. Correct the user name or the password: REDIS_URL, or REDIS_PASSWORD if/,
  ],
  [
    "no password",
    async () => `redis://${new URL(server.url).host}`,
    /^refuses: "NOAUTH .+"\. It demands a password: set it in REDIS_URL, or REDIS_PASSWORD/,
  ],
  [
    "a user without rights",
    async () => as("stranger", secret),
    /^refuses: "NOPERM .+'set' command"\. Give this user the rights that deploy\/redis-users\.conf lists/,
  ],
  [
    "more clients than maxclients",
    async () => {
      await set("maxclients", "1");
      return server.url;
    },
    /^refuses: "ERR max number of clients reached"\. Find out who has so many .+ raise maxclients/,
  ],
  [
    "too many clients of the primary that sentinels name",
    async () => {
      await set("maxclients", "1");
      const { hostname: host, port } = new URL(server.url);
      const servers = { sentinels: [{ host, port: 1 }], name: "any" };
      vi.spyOn(sharePrimaries(servers), "find").mockResolvedValue({ host, port: Number(port) });
      return servers;
    },
    /^refuses: "ERR max number of clients reached"\./,
  ],
  [
    "no memory",
    async () => {
      await set("maxmemory", "1");
      return server.url;
    },
    /^refuses: "OOM command not allowed .+"\. Its memory is full: see "RedisMemoryHigh"/,
  ],
  [
    "a replica",
    async () => {
      await admin.call("REPLICAOF", "127.0.0.1", "1");
      cleanups.push(() => admin.call("REPLICAOF", "NO", "ONE"));
      return server.url;
    },
    /^refuses: "READONLY .+replica"\. It is a replica: let REDIS_URL lead to the primary\./,
  ],
  [
    "too few replicas",
    async () => {
      await set("min-replicas-to-write", "1");
      return server.url;
    },
    /^refuses: "NOREPLICAS .+"\. Too few replicas follow it/,
  ],
  [
    "protected mode",
    () => startSaying("DENIED Redis is running in protected mode because protected mode is enabled", "at once"),
    /^refuses: "DENIED Redis is running in protected mode.+"\. It is in protected mode/,
  ],
  [
    "a disk that is full",
    () => startSaying("MISCONF Errors writing to the AOF file: No space left on device", "to commands"),
    /^refuses: "MISCONF .+No space left on device"\. It cannot write to its disk: make space/,
  ],
  [
    "a server that loads its data",
    () => startSaying("LOADING Redis is loading the dataset in memory", "to commands"),
    /^refuses: "LOADING .+"\. Wait until it has read its data/,
  ],
  [
    "a name that the sentinels do not know",
    async () => {
      const { hostname, port } = new URL(await startSaying("ERR No such master with that name", "to commands"));
      return { sentinels: [{ host: hostname, port: Number(port) }], name: "other" };
    },
    /^refuses: "ERR No such master with that name"\. .+ correct REDIS_SENTINEL_NAME/,
  ],
  [
    "a wrong password for the sentinels",
    async () => {
      const { hostname, port } = new URL(server.url);
      const sentinels = [{ host: hostname, port: Number(port) }];
      return { sentinels, name: "any", sentinelUsername: "stranger", sentinelPassword: `${secret}-wrong` };
    },
    /^refuses: "WRONGPASS .+"\. .+ REDIS_SENTINEL_USERNAME and REDIS_SENTINEL_PASSWORD\.$/,
  ],
  [
    "a server that does not run",
    async () => `redis://:${secret}@127.0.0.1:${await freePort()}`,
    /^does not answer \(ECONNREFUSED\)\. Nothing listens there: start Redis, or correct .+ REDIS_URL\.$/,
  ],
  [
    "a name that nobody knows",
    async () => `redis://:${secret}@nowhere.invalid`,
    /^does not answer \((ENOTFOUND|EAI_AGAIN)\)\. The name server does not know the host: correct it in REDIS_URL/,
  ],
  [
    "TLS where there is none",
    async () => as("stranger", secret, "rediss"),
    /^does not answer( \((ECONNRESET|ETIMEDOUT)\))?\. .*TLS/,
  ],
];

test.each(cases)("an operator reads why and what helps: %s", async (_name, prepare, expected) => {
  const redisServers = await prepare();
  const error: unknown = await withConnection({ redisServers, prefix: "{refused}" }, (redis) =>
    redis.set("{refused}:key", "x"),
  ).catch((reason: unknown) => reason);
  const { what, advice } = describeRedisFault(error, redisServers) ?? {};
  expect(`${what}. ${advice}`).toMatch(expected);
  expect(`${what}. ${advice}`).not.toContain(secret);
});

test.each([
  ["wrong password", /WRONGPASS/],
  ["maxclients", /max number of clients/],
  ["too many clients", /max number of clients/],
])("a process that goes on trying knows why as well: %s", async (name, expected) => {
  const [, prepare] = cases.find(([one]) => one.includes(name)) ?? [];
  const redisServers = (await prepare?.()) ?? "";
  const redis = connectFailingFast({ redisServers, prefix: "{refused}" }, () => {}, {});
  const describe = watchOutage(redis, redisServers);
  cleanups.push(() => redis.disconnect());
  await waitFor(() => expect(describe()).toMatch(expected));
});

test("what Redis says of a command's arguments is not repeated", () => {
  const error = Object.assign(new Error(`ERR unknown command 'x' with args ${secret}`), { name: "ReplyError" });
  expect(describeRedisFault(error, server.url)).toEqual({ what: "refused the command (ERR)", advice: "" });
  expect(describeRedisFault(new TypeError(secret), server.url)).toBeUndefined();
});
