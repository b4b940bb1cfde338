import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { LocalServer } from "@booking-events/scripts/local-server";
import { freePort } from "@booking-events/scripts/ports";
import { startRedis } from "@booking-events/scripts/services";
import { Redis } from "ioredis";
import { everybody, type Network, servers } from "./network.ts";

export type RedisNode = Awaited<ReturnType<typeof startRedisNode>>;

const askTimeoutMs = 2_000;
const reconnectMs = 50;

/**
 * Starts a Redis as if it had a machine of its own: clients and other nodes reach it through the network.
 *
 * @param options.settings gets the ports by which others reach the node
 */
export async function startRedisNode(options: {
  name: string;
  dir: string;
  password: string;
  network: Network;
  signal?: AbortSignal | undefined;
  settings: (ports: { port: number; busPort: number; ownBusPort: number }) => Record<string, string>;
}) {
  const { name, dir, password, network, signal } = options;
  const host = network.addMachine(name);
  const [ownPort, ownBusPort] = [await freePort(), await freePort()];
  const [port, busPort] = [await network.expose(name, ownPort), await network.expose(name, ownBusPort)];
  mkdirSync(dir, { recursive: true });
  writeFileSync(join(dir, "password"), password, { mode: 0o600 });
  const server = await startRedis({
    dir,
    host,
    port: ownPort,
    keepsConfiguration: true,
    ...(signal && { signal }),
    settings: {
      "bind-source-addr": host,
      masterauth: password,
      "replica-announce-ip": "127.0.0.1",
      "replica-announce-port": String(port),
      // By default, a primary waits 5 s for further replicas that want the same data.
      "repl-diskless-sync-delay": "0",
      ...options.settings({ port, busPort, ownBusPort }),
    },
  });
  const own = askPastNetwork(name, server);

  return {
    /** Also the name of its machine. */
    name,
    server,
    /** The port of 127.0.0.1 that it announces to clients and other nodes. */
    port,
    /** Likewise, for the cluster's bus. */
    busPort,
    address: `127.0.0.1:${port}`,
    /** Sends a command to this node, whatever the network does. */
    ask: own.ask,
    /** Nothing passes between its machine and any other until the returned function is called. */
    cutOff: () => cutBothWays(network, name, everybody),
    /** Nothing passes between it and other servers, while clients reach it. */
    isolate: () => cutBothWays(network, name, servers),
    async stop(): Promise<void> {
      own.close();
      await server.stop();
    },
  };
}

function askPastNetwork(name: string, { url }: LocalServer) {
  const redis = new Redis(url, {
    commandTimeout: askTimeoutMs,
    maxRetriesPerRequest: 1,
    retryStrategy: () => reconnectMs,
  });
  redis.on("error", () => {});
  return {
    async ask<Answer>(command: string, ...args: (string | number)[]): Promise<Answer> {
      try {
        return (await redis.call(command, ...args)) as Answer;
      } catch (cause) {
        throw new Error(`${name} does not answer ${command}: ${cause}`, { cause });
      }
    },
    close: () => redis.disconnect(),
  };
}

/** @returns what repairs the links */
function cutBothWays(network: Network, one: string, others: string): () => void {
  const repairs = [network.cut({ from: one, to: others }), network.cut({ from: others, to: one })];
  return () => {
    for (const repair of repairs) repair();
  };
}

/**
 * Ends a server as if its machine had lost power: what it has sent and what is still on its way arrives nowhere, and
 * nobody is told that it has ended.
 *
 * @returns what starts it again, with its data
 */
export async function killMachine({ server, cutOff }: Pick<RedisNode, "server" | "cutOff">) {
  const repair = cutOff();
  const ended = server.ended();
  server.kill("SIGKILL");
  await ended;
  return async () => {
    repair();
    await server.restart();
  };
}

/** "key:value" lines, as INFO and CLUSTER INFO have them. */
export function readInfo(text: string): Map<string, string> {
  return new Map(
    text.split(/\r?\n/).flatMap((line) => {
      const colon = line.indexOf(":");
      return colon < 0 ? [] : [[line.slice(0, colon), line.slice(colon + 1)] as const];
    }),
  );
}

/** Is this a replica that has all data of its primary, as far as it knows? */
export async function isSynchronized(node: Pick<RedisNode, "ask">): Promise<boolean> {
  const info = readInfo(await node.ask<string>("INFO", "replication"));
  return info.get("role") === "slave" && info.get("master_link_status") === "up";
}

/** The replicas that a primary sends its data to, and that have received the last of it some second ago. */
export async function countReplicas(node: Pick<RedisNode, "ask">): Promise<number> {
  const text = await node.ask<string>("INFO", "replication");
  return [...text.matchAll(/^slave\d+:.*state=online,offset=\d+,lag=[01]\b/gm)].length;
}
