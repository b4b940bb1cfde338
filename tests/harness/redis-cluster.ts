import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { createNetwork, type Network } from "./network.ts";
import { countReplicas, isSynchronized, type RedisNode, readInfo, startRedisNode } from "./redis-node.ts";
import { waitFor } from "./wait-for.ts";

export type RedisCluster = Awaited<ReturnType<typeof startRedisCluster>>;

const slots = 16_384;
const settledTimeoutMs = 60_000;
const pollMs = 50;
const keysPerMove = 100;
const moveTimeoutMs = 5_000;

/**
 * Starts a Redis Cluster whose nodes are as durable as the service demands, and reach each other and clients through a
 * network that can be cut. Resolves when all nodes agree and all replicas have their primary's data.
 *
 * @param options.dir holds a directory for each node
 * @param options.network default: one without delays, which `stop` closes
 */
export async function startRedisCluster(options: {
  dir: string;
  primaries: number;
  replicasOfEach: number;
  nodeTimeoutMs?: number;
  network?: Network;
  signal?: AbortSignal;
}) {
  const { dir, primaries, replicasOfEach, nodeTimeoutMs = 2_000, signal } = options;
  const network = options.network ?? createNetwork({ delayMs: { least: 0, most: 0 } });
  const password = randomBytes(24).toString("hex");
  const nodes: RedisNode[] = [];
  await using started = new AsyncDisposableStack();
  let running = started;
  if (options.network === undefined) started.defer(() => network.close());

  async function startNode(name: string): Promise<RedisNode> {
    const node = await startRedisNode({
      name,
      dir: join(dir, name),
      password,
      network,
      signal,
      settings: ({ port, busPort, ownBusPort }) => ({
        "cluster-enabled": "yes",
        "cluster-node-timeout": String(nodeTimeoutMs),
        "cluster-port": String(ownBusPort),
        "cluster-announce-ip": "127.0.0.1",
        "cluster-announce-port": String(port),
        "cluster-announce-bus-port": String(busPort),
        // A shard whose nodes are down takes only its own bookings with it.
        "cluster-require-full-coverage": "no",
      }),
    });
    nodes.push(node);
    running.defer(node.stop);
    return node;
  }

  const names = Array.from({ length: primaries * (1 + replicasOfEach) }, (_, index) => `redis-${index + 1}`);
  await Promise.all(names.map(startNode));
  nodes.sort((a, b) => names.indexOf(a.name) - names.indexOf(b.name));
  await formCluster(nodes, primaries, replicasOfEach);

  running = started.move();
  const idOf = (node: RedisNode) => node.ask<string>("CLUSTER", "MYID");
  const cluster = {
    password,
    network,
    /** In the order in which they were added. */
    nodes: nodes as readonly RedisNode[],
    node(name: string): RedisNode {
      const found = nodes.find((node) => node.name === name);
      if (found === undefined) throw new Error(`The cluster has no node ${name}.`);
      return found;
    },
    /** For `REDIS_CLUSTER`. */
    addresses: () => nodes.map(({ address }) => address),
    /** Those that serve slots, according to themselves. */
    primaries: () => selectNodes(nodes, async (node) => (await findMyself(node)).ranges.length > 0),
    /** The primary that serves the slot of this key, according to itself. */
    async primaryOf(key: string): Promise<RedisNode> {
      // Some may be down.
      const slot = Number(await Promise.any(nodes.map((node) => node.ask("CLUSTER", "KEYSLOT", key))));
      const [owner] = await selectNodes(nodes, async (node) => {
        const { ranges } = await findMyself(node);
        return ranges.some(([first, last]) => first <= slot && slot <= last);
      });
      if (owner === undefined) throw new Error(`No node serves slot ${slot}.`);
      return owner;
    },
    /** The replicas of a primary. */
    async replicasOf(primary: RedisNode): Promise<RedisNode[]> {
      const id = await idOf(primary);
      return await selectNodes(nodes, async (node) => (await findMyself(node)).primaryId === id);
    },
    /** Resolves when all nodes agree on who serves what, and all replicas have their primary's data. */
    untilSettled: () => untilSettled(nodes),
    /** Makes this replica a primary without losing anything: it waits for the last of its primary's data. */
    async failOver(replica: RedisNode): Promise<void> {
      await replica.ask("CLUSTER", "FAILOVER");
      await waitFor(async () => (await findMyself(replica)).isPrimary, { timeoutMs: settledTimeoutMs });
    },
    /** Starts another node, and resolves when all others know it. Without a primary, it becomes one that serves no slots yet. */
    async addNode(name: string, primary?: RedisNode): Promise<RedisNode> {
      const known = nodes.find((node) => node !== primary) ?? (nodes[0] as RedisNode);
      const node = await startNode(name);
      await known.ask("CLUSTER", "MEET", "127.0.0.1", node.port, node.busPort);
      await untilSettled(nodes);
      if (primary !== undefined) {
        await node.ask("CLUSTER", "REPLICATE", await idOf(primary));
        await untilSettled(nodes);
      }
      return node;
    },
    /** Moves a slot with all its keys, while clients use them. */
    moveSlot: (slot: number, from: RedisNode, to: RedisNode) => moveSlot({ slot, from, to, nodes, password }),
    /** Stops a node that serves no slots, and makes the others forget it. */
    async removeNode(node: RedisNode): Promise<void> {
      const id = await idOf(node);
      nodes.splice(nodes.indexOf(node), 1);
      // A forgotten node comes back by gossip while any node knows it and it runs.
      await node.stop();
      await Promise.all(nodes.map((other) => other.ask("CLUSTER", "FORGET", id)));
    },
    stop: () => running.disposeAsync(),
  };
  return cluster;
}

/** Divides the slots among the first nodes, and makes the others their replicas. Resolves when all agree. */
async function formCluster(nodes: readonly RedisNode[], primaries: number, replicasOfEach: number): Promise<void> {
  const [first] = nodes;
  if (first === undefined) throw new Error("A cluster has at least one node.");
  for (const [index, node] of nodes.entries()) {
    await node.ask("CLUSTER", "SET-CONFIG-EPOCH", index + 1);
    if (index >= primaries) continue;
    const [start, end] = [index, index + 1].map((part) => Math.floor((slots * part) / primaries)) as [number, number];
    await node.ask("CLUSTER", "ADDSLOTSRANGE", start, end - 1);
  }
  for (const node of nodes.slice(1)) await first.ask("CLUSTER", "MEET", "127.0.0.1", node.port, node.busPort);
  const knowsAll = async (node: RedisNode) => (await readNodes(node)).every(({ isKnown }) => isKnown);
  const hasAll = async (node: RedisNode) => (await readNodes(node)).length === nodes.length;
  for (const node of nodes)
    await waitFor(async () => (await hasAll(node)) && (await knowsAll(node)), { timeoutMs: settledTimeoutMs });
  for (const [index, replica] of nodes.slice(primaries).entries()) {
    const primary = nodes[Math.floor(index / replicasOfEach)] as RedisNode;
    await replica.ask("CLUSTER", "REPLICATE", await primary.ask<string>("CLUSTER", "MYID"));
  }
  await untilSettled(nodes);
}

async function untilSettled(nodes: readonly RedisNode[]): Promise<void> {
  await waitFor(
    async () => {
      const views = await Promise.all(nodes.map(readNodes));
      const layouts = new Set(views.map(describeLayout));
      if (layouts.size > 1) throw new Error("The nodes do not agree.");
      for (const node of nodes) await checkSettled(node, nodes);
    },
    { timeoutMs: settledTimeoutMs, intervalMs: pollMs },
  );
}

async function checkSettled(node: RedisNode, nodes: readonly RedisNode[]): Promise<void> {
  const state = readInfo(await node.ask<string>("CLUSTER", "INFO"));
  if (state.get("cluster_state") !== "ok") throw new Error(`${node.name} says that the cluster is down.`);
  const { id, isPrimary } = await findMyself(node);
  const view = await readNodes(node);
  if (view.length !== nodes.length || !view.every(({ isKnown }) => isKnown))
    throw new Error(`${node.name} does not know all nodes.`);
  if (!isPrimary && !(await isSynchronized(node))) throw new Error(`${node.name} has not all data of its primary.`);
  const replicas = view.filter(({ primaryId }) => primaryId === id).length;
  if (isPrimary && (await countReplicas(node)) !== replicas)
    throw new Error(`${node.name} does not send its data to each of its ${replicas} replicas.`);
}

interface NodeView {
  id: string;
  isMyself: boolean;
  isPrimary: boolean;
  /** Neither suspected to have failed, nor still shaking hands. */
  isKnown: boolean;
  primaryId: string | undefined;
  ranges: [first: number, last: number][];
}

/** Lines such as "<id> <address> myself,master - 0 0 1 connected 0-5460 [42->-<id>]". */
async function readNodes(node: RedisNode): Promise<NodeView[]> {
  const text = await node.ask<string>("CLUSTER", "NODES");
  return text
    .trimEnd()
    .split("\n")
    .map((line) => {
      const [id = "", , flagText = "", primaryId = "-", , , , link, ...served] = line.split(" ");
      const flags = flagText.split(",");
      const isMyself = flags.includes("myself");
      return {
        id,
        isMyself,
        isPrimary: flags.includes("master"),
        isKnown: !flags.some((flag) => /fail|handshake|noaddr/.test(flag)) && (isMyself || link === "connected"),
        primaryId: primaryId === "-" ? undefined : primaryId,
        ranges: served
          .filter((range) => !range.startsWith("["))
          .map((range) => {
            const [first, last = first] = range.split("-").map(Number);
            return [first, last] as [number, number];
          }),
      };
    });
}

function describeLayout(view: readonly NodeView[]): string {
  return view
    .map(({ id, isPrimary, primaryId, ranges }) => `${id} ${isPrimary} ${primaryId} ${ranges.join(";")}`)
    .sort()
    .join("\n");
}

async function findMyself(node: RedisNode): Promise<NodeView> {
  const myself = (await readNodes(node)).find(({ isMyself }) => isMyself);
  if (myself === undefined) throw new Error(`${node.name} does not know itself.`);
  return myself;
}

/** A node that does not answer has none of the properties asked for. */
async function selectNodes(nodes: readonly RedisNode[], has: (node: RedisNode) => Promise<boolean>) {
  const answers = await Promise.all(nodes.map((node) => has(node).catch(() => false)));
  return nodes.filter((_, index) => answers[index]);
}

/** As redis-cli --cluster reshard does it. */
async function moveSlot(options: {
  slot: number;
  from: RedisNode;
  to: RedisNode;
  nodes: readonly RedisNode[];
  password: string;
}): Promise<void> {
  const { slot, from, to, nodes, password } = options;
  const [fromId, toId] = [await from.ask<string>("CLUSTER", "MYID"), await to.ask<string>("CLUSTER", "MYID")];
  await to.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", fromId);
  await from.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", toId);
  for (;;) {
    const keys = await from.ask<string[]>("CLUSTER", "GETKEYSINSLOT", slot, keysPerMove);
    if (keys.length === 0) break;
    const target = ["127.0.0.1", to.port, "", 0, moveTimeoutMs] as const;
    await from.ask("MIGRATE", ...target, "AUTH", password, "KEYS", ...keys);
  }
  // The new owner first: if it were the last to know, both could send clients to the other.
  for (const node of [to, from, ...nodes.filter((other) => other !== to && other !== from)])
    await node.ask("CLUSTER", "SETSLOT", slot, "NODE", toId).catch(ignoreReplica);
}

/** Replicas learn it from their primary. */
function ignoreReplica(error: Error): void {
  if (!error.message.includes("only with master")) throw error;
}
