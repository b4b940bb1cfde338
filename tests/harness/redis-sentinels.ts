import { randomBytes } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findRedis, redisMissing } from "@booking-events/scripts/install";
import { startServer } from "@booking-events/scripts/local-server";
import { freePort } from "@booking-events/scripts/ports";
import { pingRedis } from "@booking-events/scripts/redis";
import { Redis } from "ioredis";
import type { Network } from "./network.ts";
import { countReplicas, isSynchronized, type RedisNode, readInfo, startRedisNode } from "./redis-node.ts";
import { waitFor } from "./wait-for.ts";

export type RedisSentinels = Awaited<ReturnType<typeof startRedisSentinels>>;

const settledTimeoutMs = 60_000;
const pollMs = 50;
const askTimeoutMs = 2_000;

/** For `REDIS_SENTINEL_NAME`. */
const name = "bookings";
const replicaNames = ["redis-2", "redis-3"];
const sentinelNames = ["sentinel-1", "sentinel-2", "sentinel-3"];
const quorum = 2;

interface Options {
  /** Holds a directory for each server. */
  dir: string;
  network: Network;
  /** How long a server must be silent until a Sentinel takes it for dead. */
  downAfterMs: number;
  /** How often a Sentinel asks servers for their roles. Default: Redis' own 10 s. A server that comes back is told its new role then. */
  infoIntervalMs?: number;
  signal?: AbortSignal;
}

/**
 * Starts one primary, its replicas, and the Sentinels that watch them. All are as durable as the service demands, and
 * reach each other and clients through a network that can be cut. Resolves when all replicas have the primary's data
 * and all Sentinels know each other.
 */
export async function startRedisSentinels(options: Options) {
  const password = randomBytes(24).toString("hex");
  await using started = new AsyncDisposableStack();
  const nodes = await startNodes(options, password, started);
  const [first] = nodes;
  const sentinels = await Promise.all(
    sentinelNames.map(async (sentinelName) => {
      const sentinel = await startSentinel(sentinelName, first.port, options, password);
      started.defer(sentinel.stop);
      return sentinel;
    }),
  );

  const primary = async () => {
    const found = await findPrimary(nodes, sentinels);
    if (found === undefined) throw new Error("The Sentinels do not agree on a primary.");
    return found;
  };
  const untilSettled = () =>
    waitFor(
      async () => {
        for (const sentinel of sentinels) await checkSentinel(sentinel);
        await checkReplicas(await primary(), nodes);
      },
      { timeoutMs: settledTimeoutMs, intervalMs: pollMs },
    );
  await untilSettled();

  const running = started.move();
  return {
    name,
    password,
    nodes,
    sentinels,
    /** For `REDIS_SENTINELS`. */
    addresses: sentinels.map(({ address }) => address),
    /** The server that most Sentinels call the primary, and that is one. */
    primary,
    /** Resolves when all Sentinels agree, and all replicas have the primary's data. */
    untilSettled,
    /** For a moment, the old primary still takes writes, and another replica confirms them. */
    async failOver(): Promise<void> {
      const old = await primary();
      await waitFor(() => sentinels[0]?.ask("SENTINEL", "FAILOVER", name));
      await waitFor(async () => (await primary()) !== old, { timeoutMs: settledTimeoutMs });
    },
    stop: () => running.disposeAsync(),
  };
}

/** @returns the primary first */
async function startNodes({ dir, network, signal }: Options, password: string, started: AsyncDisposableStack) {
  async function startNode(nodeName: string, settings: Record<string, string>): Promise<RedisNode> {
    const node = await startRedisNode({
      name: nodeName,
      dir: join(dir, nodeName),
      password,
      network,
      signal,
      settings: () => settings,
    });
    started.defer(node.stop);
    return node;
  }
  const first = await startNode("redis-1", {});
  const replicaOf = { replicaof: `127.0.0.1 ${first.port}` };
  const replicas = await Promise.all(replicaNames.map((replica) => startNode(replica, replicaOf)));
  const nodes: [RedisNode, ...RedisNode[]] = [first, ...replicas];
  await waitFor(() => checkReplicas(first, nodes), { timeoutMs: settledTimeoutMs, intervalMs: pollMs });
  return nodes;
}

type Sentinel = Awaited<ReturnType<typeof startSentinel>>;

async function startSentinel(sentinelName: string, primaryPort: number, options: Options, password: string) {
  const { network, signal } = options;
  const dir = join(options.dir, sentinelName);
  const program = findRedis();
  if (!program) throw redisMissing();
  const host = network.addMachine(sentinelName);
  const ownPort = await freePort();
  const port = await network.expose(sentinelName, ownPort);
  mkdirSync(dir, { recursive: true });
  const file = join(dir, "sentinel.conf");
  // A Sentinel keeps what it has learnt in this file.
  const configuration = `bind ${host}
bind-source-addr ${host}
port ${ownPort}
dir ${JSON.stringify(dir)}
requirepass ${password}
sentinel sentinel-pass ${password}
sentinel announce-ip 127.0.0.1
sentinel announce-port ${port}
sentinel monitor ${name} 127.0.0.1 ${primaryPort} ${quorum}
sentinel auth-pass ${name} ${password}
sentinel down-after-milliseconds ${name} ${options.downAfterMs}
sentinel failover-timeout ${name} ${options.downAfterMs * 5}
sentinel parallel-syncs ${name} ${replicaNames.length}
`;
  writeFileSync(file, configuration, { mode: 0o600 });
  const url = (itsPort: number) => `redis://default:${password}@${host}:${itsPort}`;
  const server = await startServer(
    {
      name: sentinelName,
      dir,
      logPath: join(dir, "sentinel.log"),
      stopSignal: "SIGTERM",
      command: () => ({ file: program.file, args: [file, "--sentinel"] }),
      ping: (itsPort) => pingRedis(url(itsPort)),
      url,
    },
    { port: ownPort, signal },
  );
  const own = new Redis(server.url, { commandTimeout: askTimeoutMs, maxRetriesPerRequest: 1 });
  own.on("error", () => {});
  const ask = async <Answer>(command: string, ...args: (string | number)[]) =>
    (await own.call(command, ...args)) as Answer;
  if (options.infoIntervalMs !== undefined) await ask("SENTINEL", "DEBUG", "info-period", options.infoIntervalMs);
  return {
    name: sentinelName,
    server,
    port,
    address: `127.0.0.1:${port}`,
    ask,
    async stop(): Promise<void> {
      own.disconnect();
      await server.stop();
    },
  };
}

/** Throws unless the Sentinel sees nothing wrong, and knows all servers and all other Sentinels. */
async function checkSentinel(sentinel: Sentinel): Promise<void> {
  const state = await sentinel.ask<string[]>("SENTINEL", "MASTER", name);
  const read = (field: string) => state[state.indexOf(field) + 1];
  if (read("flags") !== "master") throw new Error(`${sentinel.name} calls the primary ${read("flags")}.`);
  if (read("num-other-sentinels") !== String(sentinelNames.length - 1))
    throw new Error(`${sentinel.name} does not know all others.`);
  const known = await sentinel.ask<string[][]>("SENTINEL", "REPLICAS", name);
  const healthy = known.filter((replica) => replica[replica.indexOf("flags") + 1] === "slave").length;
  if (healthy !== replicaNames.length) throw new Error(`${sentinel.name} knows only ${healthy} replicas.`);
}

async function checkReplicas(primary: RedisNode, nodes: readonly RedisNode[]): Promise<void> {
  for (const node of nodes.filter((other) => other !== primary))
    if (!(await isSynchronized(node))) throw new Error(`${node.name} has not all data of its primary.`);
  const replicas = await countReplicas(primary);
  if (replicas !== nodes.length - 1) throw new Error(`${primary.name} has ${replicas} replicas.`);
}

/** The one that most Sentinels name. It must call itself a primary, too. */
async function findPrimary(
  nodes: readonly RedisNode[],
  sentinels: readonly Sentinel[],
): Promise<RedisNode | undefined> {
  const answers = await Promise.all(
    sentinels.map((sentinel) =>
      sentinel.ask<[string, string]>("SENTINEL", "GET-MASTER-ADDR-BY-NAME", name).catch(() => undefined),
    ),
  );
  const votes = (node: RedisNode) => answers.filter((answer) => answer?.[1] === String(node.port)).length;
  const named = nodes.find((node) => votes(node) > sentinels.length / 2);
  if (named === undefined) return undefined;
  const info = readInfo(await named.ask<string>("INFO", "replication"));
  return info.get("role") === "master" ? named : undefined;
}
