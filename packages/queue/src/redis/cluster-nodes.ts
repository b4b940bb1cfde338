import { formatAddress, type RedisAddress, type RedisCluster } from "@booking-events/runtime";
import { toAccessOptions } from "./access.ts";
import type { Directory } from "./directory.ts";

/** What one node of a cluster knows of all. */
export interface ClusterView {
  /** Whether the node says that it works. One that has lost the majority of the primaries says that it does not. */
  isUp: boolean;
  nodes: ClusterNode[];
}

interface ClusterNode {
  address: RedisAddress;
  hasFailed: boolean;
  /** A higher one is a later decision about who serves a slot. */
  configEpoch: number;
  ranges: [first: number, last: number][];
}

export function clusterDirectory(servers: RedisCluster): Directory<ClusterView> {
  const prefersNames = servers.isEncrypted === true;
  return {
    named: servers.cluster,
    access: toAccessOptions(servers),
    async ask(redis, asked) {
      const [info, nodes] = await Promise.all([redis.cluster("INFO"), redis.cluster("NODES")]);
      return parseClusterView(String(info), String(nodes), asked, { prefersNames });
    },
    listOthers: listNodes,
    findPrimary: (views, prefix) => findSlotOwner(views, slotOf(prefix)),
  };
}

/**
 * @param info the reply of CLUSTER INFO
 * @param nodes the reply of CLUSTER NODES
 * @param asked the node that replied; it may not know its own address yet
 * @param prefersNames whether to use the names of hosts, which certificates have, instead of their addresses
 */
export function parseClusterView(
  info: string,
  nodes: string,
  asked: RedisAddress,
  { prefersNames }: { prefersNames: boolean },
): ClusterView {
  const lines = nodes.split("\n").filter((line) => line !== "");
  return {
    isUp: /^cluster_state:ok\r?$/m.test(info),
    nodes: lines.flatMap((line) => {
      const [, where = "", flagText = "", , , , epoch, , ...served] = line.split(" ");
      const flags = flagText.split(",");
      if (flags.includes("noaddr") || flags.includes("handshake")) return [];
      return [
        {
          address: parseAddress(where, asked, prefersNames),
          hasFailed: flags.includes("fail"),
          configEpoch: Number(epoch),
          ranges: served.filter((range) => !range.startsWith("[")).map(parseRange),
        },
      ];
    }),
  };
}

/** @param where `<ip>:<port>@<port of the bus>[,<name of the host>]`; Redis 7 adds more after another comma */
function parseAddress(where: string, asked: RedisAddress, prefersNames: boolean): RedisAddress {
  const [endpoint = "", name = ""] = where.split(",");
  const beforeBus = endpoint.split("@", 1)[0] ?? "";
  const colon = beforeBus.lastIndexOf(":");
  const host = prefersNames && name !== "" ? name : beforeBus.slice(0, colon);
  return { host: host === "" ? asked.host : host, port: Number(beforeBus.slice(colon + 1)) };
}

function parseRange(range: string): [first: number, last: number] {
  const [first = "", last = first] = range.split("-");
  return [Number(first), Number(last)];
}

/**
 * Finds the node that serves a slot. While views differ, the later decision counts. Views of nodes that say that they
 * do not work do not count.
 */
export function findSlotOwner(views: readonly ClusterView[], slot: number): RedisAddress | undefined {
  const owners = views
    .filter(({ isUp }) => isUp)
    .flatMap(({ nodes }) =>
      nodes.filter(({ ranges }) => ranges.some(([first, last]) => first <= slot && slot <= last)),
    );
  return owners.reduce<ClusterNode | undefined>(
    (latest, owner) => (latest === undefined || owner.configEpoch > latest.configEpoch ? owner : latest),
    undefined,
  )?.address;
}

/** The nodes to ask next time: those that some node counts as alive. */
export function listNodes(views: readonly ClusterView[]): RedisAddress[] {
  const alive = views.flatMap(({ nodes }) => nodes.filter(({ hasFailed }) => !hasFailed));
  return [...new Map(alive.map(({ address }) => [formatAddress(address), address])).values()];
}

const slotCount = 16_384;

/** Returns the slot of a key, as Redis' `keyHashSlot` computes it: CRC-16/XMODEM of its hash tag. */
export function slotOf(key: string): number {
  const tag = /^[^{]*\{([^}]+)\}/.exec(key)?.[1];
  let crc = 0;
  for (const byte of Buffer.from(tag ?? key)) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit += 1) crc = ((crc << 1) ^ (crc & 0x8000 ? 0x1021 : 0)) & 0xffff;
  }
  return crc % slotCount;
}
