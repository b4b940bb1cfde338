import {
  formatAddress,
  gatherPerTurn,
  type RedisAddress,
  type RedisCluster,
  type RedisSentinels,
  withDeadline,
} from "@booking-events/runtime";
import { Redis } from "ioredis";
import { type ClusterView, findSlotOwner, listNodes, parseClusterView, slotOf } from "./cluster-nodes.ts";

/** Knows which server is the primary that stores a prefix. */
export interface Primaries {
  /** @throws if none is known within {@link lookDeadlineMs} */
  find(prefix: string): Promise<RedisAddress>;
  /**
   * Looks regularly, and calls `onMoved` when another server has become the primary that stores the prefix.
   *
   * @returns a function that stops it
   */
  watch(prefix: string, current: RedisAddress, onMoved: () => void): () => void;
  /**
   * Whether nobody is replacing this primary: most sentinels say so after this was called, and none that answers says
   * otherwise. In a cluster it is true without a question, since a primary that is replaced soon refuses writes.
   */
  isUndisputed(primary: RedisAddress): Promise<boolean>;
}

/** No node of a cluster that answers serves the slot, or no sentinel knows a primary. */
class NoPrimary extends Error {
  override name = "NoPrimary";
  readonly code = "NO_PRIMARY";
}

/** How long servers may take to say where the primary is. */
const lookDeadlineMs = 1_000;
/** After the first answer, the others get this much time, so that one frozen server does not delay a reconnection. */
const otherAnswersMs = 200;
/** The same after most sentinels have answered, while senders wait. */
const otherOpinionsMs = 50;
/**
 * A connection to a server that is frozen or cut off, or waits for an event, does not notice by itself that another one
 * has taken over.
 */
export const lookIntervalMs = 1_000;

/** How to ask the servers of a cluster, or sentinels, and what their answers mean. */
interface Directory<View> {
  /** The servers that the operator named. */
  named: readonly RedisAddress[];
  username: string | undefined;
  password: string | undefined;
  isEncrypted: boolean;
  ask(redis: Redis, asked: RedisAddress): Promise<View>;
  /** Further servers that can be asked. */
  listOthers(views: readonly View[]): RedisAddress[];
  findPrimary(views: readonly View[], prefix: string): RedisAddress | undefined;
  /** Undefined: there is no need to ask. */
  isUndisputed?(views: readonly View[], primary: RedisAddress): boolean;
}

const shared = new Map<string, Primaries>();

/** All connections of a process share what it knows, since each look asks every server. */
export function sharePrimaries(servers: RedisCluster | RedisSentinels): Primaries {
  const key = JSON.stringify(servers);
  const known = shared.get(key);
  if (known !== undefined) return known;
  const primaries = "cluster" in servers ? createPrimaries(inCluster(servers)) : createPrimaries(bySentinels(servers));
  shared.set(key, primaries);
  return primaries;
}

function createPrimaries<View>(directory: Directory<View>): Primaries {
  const { isUndisputed = () => true } = directory;
  const connections = new Map<string, Redis>();
  const watches = new Set<{ prefix: string; current: string; onMoved: () => void }>();
  let others: RedisAddress[] = [];
  let underWay: Promise<View[]> | undefined;
  let timer: NodeJS.Timeout | undefined;

  /** A connection is kept while its server answers. */
  async function askOne(address: RedisAddress): Promise<View> {
    const key = formatAddress(address);
    const known = connections.get(key);
    const redis = known === undefined || known.status === "end" ? connect(directory, address) : known;
    connections.set(key, redis);
    try {
      return await withDeadline(directory.ask(redis, address), lookDeadlineMs);
    } catch (error) {
      redis.disconnect();
      // Another question to the same server may have failed before, and the next one has opened a new connection.
      if (connections.get(key) === redis) connections.delete(key);
      throw reasons.get(redis) ?? error;
    }
  }

  async function look(): Promise<View[]> {
    const addresses = others.length > 0 ? others : directory.named;
    const { views, reason } = await gather(addresses, {
      ask: askOne,
      listOthers: directory.listOthers,
      enough: 1,
      graceMs: otherAnswersMs,
    });
    // If none of them answers any more, the ones that the operator named are asked next.
    others = directory.listOthers(views);
    const needed = new Set((others.length > 0 ? others : directory.named).map(formatAddress));
    for (const [key, redis] of connections) {
      if (needed.has(key)) continue;
      redis.disconnect();
      connections.delete(key);
    }
    if (views.length === 0) throw reason;
    return views;
  }

  function lookTogether(): Promise<View[]> {
    underWay ??= look().finally(() => {
      underWay = undefined;
    });
    return underWay;
  }

  /** While a question is under way, later ones wait for the next, so no answer is older than its question. */
  const askWhetherUndisputed = gatherPerTurn<RedisAddress, boolean>(
    async (primaries) => {
      const { views } = await gather(directory.named, {
        ask: askOne,
        listOthers: directory.listOthers,
        enough: Math.floor(directory.named.length / 2) + 1,
        graceMs: otherOpinionsMs,
      });
      return primaries.map((primary) => isUndisputed(views, primary));
    },
    { underWay: { maxCalls: 1, maxWaitMs: lookDeadlineMs } },
  );

  async function lookAgain(): Promise<void> {
    // While no server answers, nothing is known that a connection should do.
    const views = await lookTogether().catch(() => []);
    for (const watch of watches) {
      const primary = directory.findPrimary(views, watch.prefix);
      if (primary !== undefined && formatAddress(primary) !== watch.current) watch.onMoved();
    }
    schedule();
  }

  function schedule(): void {
    timer = watches.size > 0 ? setTimeout(lookAgain, lookIntervalMs).unref() : undefined;
    if (timer !== undefined) return;
    for (const redis of connections.values()) redis.disconnect();
    connections.clear();
  }

  return {
    async find(prefix) {
      const primary = directory.findPrimary(await lookTogether(), prefix);
      if (primary === undefined) throw new NoPrimary("No server that answers knows a primary.");
      return primary;
    },
    watch(prefix, current, onMoved) {
      const watch = { prefix, current: formatAddress(current), onMoved };
      watches.add(watch);
      if (timer === undefined) schedule();
      return () => {
        watches.delete(watch);
      };
    },
    isUndisputed: async (primary) => directory.isUndisputed === undefined || askWhetherUndisputed(primary),
  };
}

/** Asks all servers at once, and those that they name. */
async function gather<View>(
  addresses: readonly RedisAddress[],
  options: {
    ask: (address: RedisAddress) => Promise<View>;
    listOthers: (views: readonly View[]) => RedisAddress[];
    /** After so many answers, the others get `graceMs`. */
    enough: number;
    graceMs: number;
  },
): Promise<{ views: View[]; reason: unknown }> {
  const { ask, listOthers, enough, graceMs } = options;
  const views: View[] = [];
  const asked = new Set<string>();
  let reason: unknown = new NoPrimary("No server answers.");
  let pending = 0;
  const { promise: done, resolve } = Promise.withResolvers<void>();
  const deadline = setTimeout(resolve, lookDeadlineMs);

  function askAll(some: readonly RedisAddress[]): void {
    for (const address of some) {
      if (asked.has(formatAddress(address))) continue;
      asked.add(formatAddress(address));
      pending += 1;
      void askAndLearn(address);
    }
  }

  async function askAndLearn(address: RedisAddress): Promise<void> {
    try {
      const view = await ask(address);
      if (views.push(view) === enough) setTimeout(resolve, graceMs).unref();
      askAll(listOthers([view]));
    } catch (error) {
      reason = error;
    }
    pending -= 1;
    if (pending === 0) resolve();
  }

  askAll(addresses);
  await done;
  clearTimeout(deadline);
  return { views: [...views], reason };
}

/** Why a connection failed; a command's rejection only says that the connection is closed. */
const reasons = new WeakMap<Redis, Error>();

function connect({ username, password, isEncrypted }: Directory<unknown>, { host, port }: RedisAddress): Redis {
  const redis = new Redis({
    ...{ host, port, connectionName: "booking-events-primaries" },
    ...(username ? { username } : {}),
    ...(password ? { password } : {}),
    ...(isEncrypted ? { tls: {} } : {}),
    connectTimeout: lookDeadlineMs,
    enableReadyCheck: false,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  // A process that has nothing else to do ends.
  redis.on("connect", () => redis.stream.unref());
  return redis.on("error", (error) => void reasons.set(redis, error));
}

function inCluster({ cluster, username, password, isEncrypted = false }: RedisCluster): Directory<ClusterView> {
  return {
    ...{ named: cluster, username, password, isEncrypted },
    async ask(redis, asked) {
      const [info, nodes] = await Promise.all([redis.cluster("INFO"), redis.cluster("NODES")]);
      return parseClusterView(String(info), String(nodes), asked, { prefersNames: isEncrypted });
    },
    listOthers: listNodes,
    findPrimary: (views, prefix) => findSlotOwner(views, slotOf(prefix)),
  };
}

/** What one sentinel knows of the primary. */
interface SentinelView {
  primary: RedisAddress;
  /** A higher one is a later decision about which server is the primary. */
  configEpoch: number;
  /** Whether it takes the primary for dead. */
  isDown: boolean;
  /** Whether it is promoting a replica. */
  isReplacing: boolean;
}

function bySentinels(servers: RedisSentinels): Directory<SentinelView> {
  return {
    named: servers.sentinels,
    username: servers.sentinelUsername,
    password: servers.sentinelPassword,
    isEncrypted: servers.isEncrypted ?? false,
    async ask(redis) {
      const [address, state] = (await Promise.all([
        redis.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", servers.name),
        redis.call("SENTINEL", "MASTER", servers.name),
      ])) as [[host: string, port: string] | null, string[]];
      if (address === null) throw new NoPrimary("The sentinel does not know the name.");
      const read = (field: string) => state[state.indexOf(field) + 1] ?? "";
      const flags = read("flags").split(",");
      return {
        primary: { host: address[0], port: Number(address[1]) },
        configEpoch: Number(read("config-epoch")),
        isDown: flags.includes("s_down") || flags.includes("o_down"),
        isReplacing: flags.includes("failover_in_progress"),
      };
    },
    // An operator names all of them.
    listOthers: () => [],
    findPrimary: (views) => findLatest(views)?.primary,
    isUndisputed(views, primary) {
      const isSame = (view: SentinelView | undefined) =>
        view !== undefined && formatAddress(view.primary) === formatAddress(primary);
      const agreeing = views.filter((view) => isSame(view) && !view.isDown).length;
      const isReplaced = views.some(({ isReplacing }) => isReplacing) || !isSame(findLatest(views));
      return !isReplaced && agreeing > servers.sentinels.length / 2;
    },
  };
}

function findLatest(views: readonly SentinelView[]): SentinelView | undefined {
  return views.reduce<SentinelView | undefined>(
    (latest, view) => (latest === undefined || view.configEpoch > latest.configEpoch ? view : latest),
    undefined,
  );
}
