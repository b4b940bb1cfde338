import {
  formatAddress,
  gatherPerTurn,
  type RedisAddress,
  type RedisCluster,
  type RedisSentinels,
} from "@booking-events/runtime";
import { askDeadlineMs, ServersAsked } from "./ask-servers.ts";
import { type ClusterView, clusterDirectory } from "./cluster-nodes.ts";
import { type Directory, NoPrimary } from "./directory.ts";
import { type SentinelView, sentinelDirectory } from "./sentinels.ts";

/** After the first answer, the others get this much time, so that one frozen server does not delay a reconnection. */
const otherAnswersMs = 200;
/** The same after most sentinels have answered, while senders wait. */
const otherOpinionsMs = 50;
/**
 * A connection to a server that is frozen or cut off, or waits for an event, does not notice by itself that another one
 * has taken over.
 */
const primaryCheckIntervalMs = 1_000;

type SharedPrimaries = Primaries<ClusterView> | Primaries<SentinelView>;
const shared = new Map<string, SharedPrimaries>();

/** All connections of a process share what it knows, since each look asks every server. */
export function sharePrimaries(servers: RedisCluster | RedisSentinels): SharedPrimaries {
  const key = JSON.stringify(servers);
  const known = shared.get(key);
  if (known !== undefined) return known;
  const primaries =
    "cluster" in servers ? new Primaries(clusterDirectory(servers)) : new Primaries(sentinelDirectory(servers));
  shared.set(key, primaries);
  return primaries;
}

interface Watch {
  prefix: string;
  current: string;
  onMoved: () => void;
}

class Primaries<View> {
  readonly #directory: Directory<View>;
  readonly #servers: ServersAsked<View>;
  readonly #watches = new Set<Watch>();
  /** The servers that those asked last have named. */
  #others: RedisAddress[] = [];
  #look: Promise<View[]> | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(directory: Directory<View>) {
    this.#directory = directory;
    this.#servers = new ServersAsked(directory);
  }

  /** @throws if none is known within {@link askDeadlineMs} */
  async find(prefix: string): Promise<RedisAddress> {
    const primary = this.#directory.findPrimary(await this.#lookTogether(), prefix);
    if (primary === undefined) throw new NoPrimary("No server that answers knows a primary.");
    return primary;
  }

  /**
   * Looks regularly, and calls `onMoved` when another server has become the primary that stores the prefix.
   *
   * @returns a function that stops it
   */
  watch(prefix: string, current: RedisAddress, onMoved: () => void): () => void {
    const watch = { prefix, current: formatAddress(current), onMoved };
    this.#watches.add(watch);
    if (this.#timer === undefined) this.#scheduleLook();
    return () => {
      this.#watches.delete(watch);
    };
  }

  /**
   * Whether nobody is replacing this primary: most sentinels say so after this was called, and none that answers says
   * otherwise. In a cluster it is true without a question, since a primary that is replaced soon refuses writes.
   */
  async isUndisputed(primary: RedisAddress): Promise<boolean> {
    return this.#directory.isUndisputed === undefined || this.#askWhetherUndisputed(primary);
  }

  /** While a question is under way, later ones wait for the next, so no answer is older than its question. */
  readonly #askWhetherUndisputed = gatherPerTurn<RedisAddress, boolean>(
    async (primaries) => {
      const { named, isUndisputed = () => true } = this.#directory;
      const most = Math.floor(named.length / 2) + 1;
      const { views } = await this.#servers.askAll(named, { enough: most, graceMs: otherOpinionsMs });
      return primaries.map((primary) => isUndisputed(views, primary));
    },
    { underWay: { maxCalls: 1, maxWaitMs: askDeadlineMs } },
  );

  #lookTogether(): Promise<View[]> {
    this.#look ??= this.#lookNow().finally(() => {
      this.#look = undefined;
    });
    return this.#look;
  }

  async #lookNow(): Promise<View[]> {
    const { views, reason } = await this.#servers.askAll(this.#toAsk(), { enough: 1, graceMs: otherAnswersMs });
    this.#others = this.#directory.listOthers(views);
    this.#servers.keepOnly(this.#toAsk());
    if (views.length === 0) throw reason;
    return views;
  }

  /** If none of those that were named answers any more, the ones that the operator named are asked. */
  #toAsk(): readonly RedisAddress[] {
    return this.#others.length > 0 ? this.#others : this.#directory.named;
  }

  #scheduleLook(): void {
    this.#timer =
      this.#watches.size > 0 ? setTimeout(() => this.#lookAgain(), primaryCheckIntervalMs).unref() : undefined;
    if (this.#timer === undefined) this.#servers.keepOnly([]);
  }

  async #lookAgain(): Promise<void> {
    // While no server answers, nothing is known that a connection should do.
    const views = await this.#lookTogether().catch(() => []);
    for (const { prefix, current, onMoved } of this.#watches) {
      const primary = this.#directory.findPrimary(views, prefix);
      if (primary !== undefined && formatAddress(primary) !== current) onMoved();
    }
    this.#scheduleLook();
  }
}
