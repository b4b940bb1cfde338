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

/** The variables that say where Redis is, after they were parsed. */
interface RedisSettings {
  REDIS_URL?: string | undefined;
  REDIS_CLUSTER?: RedisAddress[] | undefined;
  REDIS_SENTINELS?: RedisAddress[] | undefined;
  REDIS_SENTINEL_NAME?: string | undefined;
  REDIS_USERNAME: string;
  REDIS_PASSWORD: string;
  REDIS_TLS: boolean;
  REDIS_SENTINEL_USERNAME: string;
  REDIS_SENTINEL_PASSWORD: string;
}

/** A host name, an IPv4 address, or an IPv6 address in brackets, and a port. */
const address = /^(\[[\da-f:.]+\]|[^\s:,@/[\]]+):(\d{1,5})$/i;
const alternatives = ["REDIS_URL", "REDIS_CLUSTER", "REDIS_SENTINELS"] as const;

export function isAddressList(text: string): boolean {
  return text.split(",").every((entry) => {
    const port = Number(address.exec(entry.trim())?.[2] ?? 0);
    return port >= 1 && port <= 65_535;
  });
}

/** @param text as accepted by {@link isAddressList} */
export function parseAddressList(text: string): RedisAddress[] {
  return text.split(",").map((entry) => {
    const [, host = "", port] = address.exec(entry.trim()) ?? [];
    return { host: host.replace(/^\[|\]$/g, ""), port: Number(port) };
  });
}

/**
 * Finds variables that are missing or contradict each other.
 *
 * @param given the variables that are set
 * @returns sentences that begin with the name of the variable to change
 */
export function findRedisFaults(given: Readonly<Record<string, unknown>>): string[] {
  const isGiven = (name: string) => Object.hasOwn(given, name);
  const chosen = alternatives.filter(isGiven);
  const [first, ...others] = chosen;
  if (first === undefined)
    return [
      "REDIS_URL is required: it must be a URL that starts with redis:// or rediss://. " +
        "If Redis is a cluster, set REDIS_CLUSTER instead. If it has sentinels, set REDIS_SENTINELS instead",
    ];
  const faults = others.map((name) => `${name} contradicts ${first}: set only one of ${alternatives.join(", ")}`);
  if (isGiven("REDIS_SENTINELS") && !isGiven("REDIS_SENTINEL_NAME"))
    faults.push("REDIS_SENTINEL_NAME is required: it must be the name that the sentinels have for the primary");
  const forSentinels = ["REDIS_SENTINEL_NAME", "REDIS_SENTINEL_USERNAME", "REDIS_SENTINEL_PASSWORD"];
  if (!isGiven("REDIS_SENTINELS"))
    faults.push(...forSentinels.filter(isGiven).map((name) => `${name} needs REDIS_SENTINELS`));
  if (isGiven("REDIS_URL") && isGiven("REDIS_USERNAME"))
    faults.push("REDIS_USERNAME has no effect: put the user name into REDIS_URL");
  if (isGiven("REDIS_URL") && isGiven("REDIS_TLS")) faults.push("REDIS_TLS has no effect: use rediss:// in REDIS_URL");
  return faults;
}

export function toRedisServers(settings: RedisSettings): RedisServers {
  const { REDIS_CLUSTER: cluster, REDIS_SENTINELS: sentinels } = settings;
  const access = {
    username: settings.REDIS_USERNAME,
    password: settings.REDIS_PASSWORD,
    isEncrypted: settings.REDIS_TLS,
  };
  if (cluster !== undefined) return { cluster, ...access };
  if (sentinels === undefined) return settings.REDIS_URL ?? "";
  return {
    ...access,
    sentinels,
    name: settings.REDIS_SENTINEL_NAME ?? "",
    sentinelUsername: settings.REDIS_SENTINEL_USERNAME,
    sentinelPassword: settings.REDIS_SENTINEL_PASSWORD,
  };
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
