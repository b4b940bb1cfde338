/** Where Redis runs: the URL of a single server, or some nodes of a cluster, or the sentinels of a primary. */
export type RedisServers = string | RedisCluster | RedisSentinels;

export interface RedisCluster extends RedisAccess {
  /** Some nodes of the cluster. The others are learnt from them. */
  cluster: readonly RedisAddress[];
}

export interface RedisSentinels extends RedisAccess {
  sentinels: readonly RedisAddress[];
  /** The name that the sentinels have for the primary and its replicas. */
  name: string;
  sentinelUsername?: string;
  sentinelPassword?: string;
}

interface RedisAccess {
  /** Empty or absent: Redis' default user. */
  username?: string;
  password?: string;
  isEncrypted?: boolean;
}

export interface RedisAddress {
  host: string;
  port: number;
}

/** Returns the environment variable by which an operator said where Redis runs. */
export function nameVariable(servers: RedisServers): "REDIS_URL" | "REDIS_CLUSTER" | "REDIS_SENTINELS" {
  if (typeof servers === "string") return "REDIS_URL";
  return "cluster" in servers ? "REDIS_CLUSTER" : "REDIS_SENTINELS";
}

/** Returns the URLs of the servers that the operator named, without user names and passwords. */
export function listUrls(servers: RedisServers): [string, ...string[]] {
  if (typeof servers === "string") {
    const url = new URL(servers);
    [url.username, url.password] = ["", ""];
    return [url.href];
  }
  const scheme = servers.isEncrypted === true ? "rediss" : "redis";
  const addresses = "cluster" in servers ? servers.cluster : servers.sentinels;
  const [first = `${scheme}://`, ...others] = addresses.map((address) => `${scheme}://${formatAddress(address)}`);
  return [first, ...others];
}

export function formatAddress({ host, port }: RedisAddress): string {
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
}
