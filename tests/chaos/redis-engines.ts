import { clients, type Network, servers } from "@booking-events/harness/network";
import { RedisCluster } from "@booking-events/harness/redis-cluster";
import { killMachine, type RedisNode } from "@booking-events/harness/redis-node";
import { startRedisSentinels } from "@booking-events/harness/redis-sentinels";
import { waitFor } from "@booking-events/harness/wait-for";
import type { Chances, MachineFault } from "./machine-faults.ts";

/** Several Redis servers of which another takes over when one is lost. */
export interface RedisEngine {
  /** With which the apps find it. */
  environment: Record<string, string>;
  /** The server that has the keys with this prefix now, past the network. */
  urlOf(prefix: string): Promise<string>;
  faults: MachineFault[];
  stop(): Promise<void>;
}

export type RedisEngineName = "cluster" | "sentinel";

interface EngineOptions {
  dir: string;
  network: Network;
  /** Of the queue and its shards. */
  prefixes: readonly string[];
  signal: AbortSignal;
}

const nodeTimeoutMs = 2_000;
/** With slow links, Sentinels may split their votes several times, and try again only after 20 s or more. */
const replacedTimeoutMs = 150_000;

export const redisEngines: Record<RedisEngineName, (options: EngineOptions) => Promise<RedisEngine>> = {
  cluster: startCluster,
  sentinel: startSentinels,
};

async function startCluster({ dir, network, prefixes, signal }: EngineOptions): Promise<RedisEngine> {
  const cluster = await RedisCluster.start({ dir, primaries: 3, replicasOfEach: 2, nodeTimeoutMs, network, signal });
  const pickPrimary = ({ random }: Chances) => cluster.primaryOf(random.pick(prefixes));
  const isReplaced = async (node: RedisNode) =>
    (await Promise.all(prefixes.map((prefix) => cluster.primaryOf(prefix)))).every((owner) => owner !== node);
  const pickReplica = async (chances: Chances) =>
    chances.random.pick(await cluster.replicasOf(await pickPrimary(chances)));
  let added = 0;

  /** Grows the cluster by a node, moves the slot of a shard there and back, and shrinks it again. */
  async function resize(chances: Chances): Promise<void> {
    added += 1;
    const node = await cluster.addNode(`redis-added-${added}`);
    const prefix = chances.random.pick(prefixes);
    const owner = await cluster.primaryOf(prefix);
    const slot = Number(await owner.ask("CLUSTER", "KEYSLOT", prefix));
    await cluster.moveSlot(slot, owner, node);
    await cluster.untilSettled();
    await chances.last();
    await cluster.moveSlot(slot, node, owner);
    await cluster.untilSettled();
    await cluster.removeNode(node);
  }

  return {
    environment: { REDIS_CLUSTER: cluster.addresses.join(","), REDIS_PASSWORD: cluster.password },
    urlOf: async (prefix) => (await cluster.primaryOf(prefix)).server.url,
    faults: settling(
      () => cluster.untilSettled(),
      [
        ...serverFaults({ network, pickPrimary, isReplaced, pickReplica }),
        { name: "failover by hand", strike: async (chances) => cluster.failOver(await pickReplica(chances)) },
        { name: "a node joins, takes a shard under load, gives it back and leaves", strike: resize },
      ],
    ),
    stop: () => cluster.stop(),
  };
}

async function startSentinels({ dir, network, signal }: EngineOptions): Promise<RedisEngine> {
  const redis = await startRedisSentinels({ dir, downAfterMs: nodeTimeoutMs, network, signal });
  const pickPrimary = () => redis.primary();
  const isReplaced = async (node: RedisNode) => (await redis.primary()) !== node;
  const pickReplica = async ({ random }: Chances) => {
    const primary = await redis.primary();
    return random.pick(redis.nodes.filter((node) => node !== primary));
  };

  async function killSentinel({ random, last }: Chances): Promise<void> {
    const { server } = random.pick(redis.sentinels);
    const ended = server.ended();
    server.kill("SIGKILL");
    await ended;
    await last();
    await server.restart();
  }

  return {
    environment: {
      REDIS_SENTINELS: redis.addresses.join(","),
      REDIS_SENTINEL_NAME: redis.name,
      REDIS_PASSWORD: redis.password,
      REDIS_SENTINEL_PASSWORD: redis.password,
    },
    urlOf: async () => (await redis.primary()).server.url,
    faults: settling(redis.untilSettled, [
      ...serverFaults({ network, pickPrimary, isReplaced, pickReplica }),
      { name: "a Sentinel is killed", strike: killSentinel },
      { name: "failover by hand", strike: redis.failOver },
    ]),
    stop: redis.stop,
  };
}

function serverFaults(options: {
  network: Network;
  pickPrimary: (chances: Chances) => Promise<RedisNode>;
  isReplaced: (primary: RedisNode) => Promise<boolean>;
  pickReplica: (chances: Chances) => Promise<RedisNode>;
}): MachineFault[] {
  const { network, pickPrimary, isReplaced, pickReplica } = options;
  type Pick = typeof pickPrimary;
  const fault = (name: string, pick: Pick, strike: (node: RedisNode) => Promise<() => unknown>): MachineFault => ({
    name,
    async strike(chances) {
      const undo = await strike(await pick(chances));
      await chances.last();
      await undo();
    },
  });
  const freeze = async ({ server }: RedisNode) => {
    server.kill("SIGSTOP");
    return () => server.kill("SIGCONT");
  };
  const endProcess = async ({ server }: RedisNode) => {
    const ended = server.ended();
    server.kill("SIGKILL");
    await ended;
    return server.restart;
  };
  return [
    fault("a primary's machine dies", pickPrimary, async (node) => {
      const revive = await killMachine(node);
      await waitFor(() => isReplaced(node), { timeoutMs: replacedTimeoutMs });
      return revive;
    }),
    fault("a replica's machine dies", pickReplica, killMachine),
    fault("a primary's process is killed", pickPrimary, endProcess),
    fault("a primary freezes", pickPrimary, freeze),
    fault("a replica freezes", pickReplica, freeze),
    fault("a primary is cut off from everybody", pickPrimary, async (node) => node.cutOff()),
    fault("a primary is cut off from the other servers", pickPrimary, async (node) => node.isolate()),
    fault("a primary is cut off from clients", pickPrimary, async ({ name }) => {
      const repairs = [network.cut({ from: name, to: clients }), network.cut({ from: clients, to: name })];
      return () => repairs.forEach((repair) => void repair());
    }),
    fault("what a primary sends reaches no server", pickPrimary, async ({ name }) =>
      network.cut({ from: name, to: servers }),
    ),
    fault("what servers send does not reach a primary", pickPrimary, async ({ name }) =>
      network.cut({ from: servers, to: name }),
    ),
    fault("a replica is cut off from the other servers", pickReplica, async (node) => node.isolate()),
  ];
}

function settling(untilSettled: () => Promise<unknown>, faults: readonly MachineFault[]): MachineFault[] {
  return faults.map(({ name, strike }) => ({
    name,
    async strike(chances) {
      await strike(chances);
      await untilSettled();
    },
  }));
}
