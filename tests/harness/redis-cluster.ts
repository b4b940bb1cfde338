import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { Network } from "./network.ts";
import { countReplicas, isSynchronized, type RedisNode, readInfo, startRedisNode } from "./redis-node.ts";
import { waitFor } from "./wait-for.ts";

const slots = 16_384;
const settledTimeoutMs = 60_000;
const pollMs = 50;
const keysPerMove = 100;
const moveTimeoutMs = 5_000;

interface Options {
  /** Holds a directory for each node. */
  dir: string;
  primaries: number;
  replicasOfEach: number;
  nodeTimeoutMs: number;
  network: Network;
  signal?: AbortSignal;
}

/**
 * A Redis Cluster whose nodes are as durable as the service demands, and reach each other and clients through a network
 * that can be cut.
 */
export class RedisCluster {
  readonly password = randomBytes(24).toString("hex");
  readonly #options: Options;
  readonly #nodes: RedisNode[] = [];
  readonly #started = new AsyncDisposableStack();

  private constructor(options: Options) {
    this.#options = options;
  }

  /** Resolves when all nodes agree and all replicas have their primary's data. */
  static async start(options: Options): Promise<RedisCluster> {
    const { primaries, replicasOfEach } = options;
    const cluster = new RedisCluster(options);
    try {
      const names = Array.from({ length: primaries * (1 + replicasOfEach) }, (_, index) => `redis-${index + 1}`);
      cluster.#nodes.push(...(await Promise.all(names.map((name) => cluster.#startNode(name)))));
      await formCluster(cluster.#nodes, primaries, replicasOfEach);
      return cluster;
    } catch (error) {
      await cluster.stop();
      throw error;
    }
  }

  async stop(): Promise<void> {
    await this.#started.disposeAsync();
  }

  /** In the order in which they were added. */
  get nodes(): readonly RedisNode[] {
    return this.#nodes;
  }

  /** For `REDIS_CLUSTER`. */
  get addresses(): string[] {
    return this.#nodes.map(({ address }) => address);
  }

  /** Those that serve slots, according to themselves. */
  primaries(): Promise<RedisNode[]> {
    return selectNodes(this.#nodes, async (node) => (await findMyself(node)).ranges.length > 0);
  }

  /** The primary that serves the slot of this key, according to itself. */
  async primaryOf(key: string): Promise<RedisNode> {
    // Some may be down.
    const slot = Number(await Promise.any(this.#nodes.map((node) => node.ask("CLUSTER", "KEYSLOT", key))));
    const [owner] = await selectNodes(this.#nodes, async (node) => {
      const { ranges } = await findMyself(node);
      return ranges.some(([first, last]) => first <= slot && slot <= last);
    });
    if (owner === undefined) throw new Error(`No node serves slot ${slot}.`);
    return owner;
  }

  async replicasOf(primary: RedisNode): Promise<RedisNode[]> {
    const id = await idOf(primary);
    return selectNodes(this.#nodes, async (node) => (await findMyself(node)).primaryId === id);
  }

  /** Resolves when all nodes agree on who serves what, and all replicas have their primary's data. */
  async untilSettled(): Promise<void> {
    await untilSettled(this.#nodes);
  }

  /** Makes this replica a primary without losing anything: it waits for the last of its primary's data. */
  async failOver(replica: RedisNode): Promise<void> {
    await replica.ask("CLUSTER", "FAILOVER");
    await waitFor(async () => (await findMyself(replica)).isPrimary, { timeoutMs: settledTimeoutMs });
  }

  /** Starts another primary, which serves no slots yet, and resolves when all others know it. */
  async addNode(name: string): Promise<RedisNode> {
    const [known] = this.#nodes;
    const node = await this.#startNode(name);
    this.#nodes.push(node);
    await known?.ask("CLUSTER", "MEET", "127.0.0.1", node.port, node.busPort);
    await this.untilSettled();
    return node;
  }

  /** Moves a slot with all its keys, while clients use them, as redis-cli --cluster reshard does it. */
  async moveSlot(slot: number, from: RedisNode, to: RedisNode): Promise<void> {
    const [fromId, toId] = [await idOf(from), await idOf(to)];
    await to.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", fromId);
    await from.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", toId);
    for (;;) {
      const keys = await from.ask<string[]>("CLUSTER", "GETKEYSINSLOT", slot, keysPerMove);
      if (keys.length === 0) break;
      const target = ["127.0.0.1", to.port, "", 0, moveTimeoutMs] as const;
      await from.ask("MIGRATE", ...target, "AUTH", this.password, "KEYS", ...keys);
    }
    // The new owner first: if it were the last to know, both could send clients to the other.
    for (const node of new Set([to, from, ...this.#nodes]))
      await node.ask("CLUSTER", "SETSLOT", slot, "NODE", toId).catch(ignoreReplica);
  }

  /** Stops a node that serves no slots, and makes the others forget it. */
  async removeNode(node: RedisNode): Promise<void> {
    const id = await idOf(node);
    this.#nodes.splice(this.#nodes.indexOf(node), 1);
    // A forgotten node comes back by gossip while any node knows it and it runs.
    await node.stop();
    await Promise.all(this.#nodes.map((other) => other.ask("CLUSTER", "FORGET", id)));
  }

  async #startNode(name: string): Promise<RedisNode> {
    const { dir, network, signal, nodeTimeoutMs } = this.#options;
    const node = await startRedisNode({
      name,
      dir: join(dir, name),
      password: this.password,
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
    this.#started.defer(node.stop);
    return node;
  }
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
    await replica.ask("CLUSTER", "REPLICATE", await idOf(primary));
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

function idOf(node: RedisNode): Promise<string> {
  return node.ask("CLUSTER", "MYID");
}

/** Replicas learn it from their primary. */
function ignoreReplica(error: Error): void {
  if (!error.message.includes("only with master")) throw error;
}
