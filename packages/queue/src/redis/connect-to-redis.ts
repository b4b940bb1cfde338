import { connect as connectTcp, type Socket, Socket as TcpSocket } from "node:net";
import { connect as connectTls } from "node:tls";
import {
  formatAddress,
  type RedisAddress,
  type RedisCluster,
  type RedisSentinels,
  type RedisServers,
} from "@booking-events/runtime";
import { AbstractConnector, Redis, type RedisOptions } from "ioredis";
import { toAccessOptions } from "./access.ts";
import { sharePrimaries } from "./primaries.ts";

export interface QueueLocation {
  redisServers: RedisServers;
  /** All keys of the queue begin with it. Its hash tag keeps them on one server. */
  prefix: string;
}

type ConnectionOptions = Omit<RedisOptions, "replyMapping">;

/** A server that accepts connections but does not get ready within this time is frozen, or loads its data. */
const readyTimeoutMs = 2_000;

/**
 * Opens a connection to the server that stores the keys with this prefix.
 *
 * In a cluster or behind sentinels, each connection and reconnection leads to the server that is then the primary. One
 * ordinary connection is enough, because all keys of a prefix are on one server.
 */
export function connectToRedis({ redisServers, prefix }: QueueLocation, options: ConnectionOptions): Redis {
  if (typeof redisServers === "string") return new Redis(redisServers, options);
  return new Redis({
    ...options,
    ...toAccessOptions(redisServers),
    Connector: createConnector(redisServers, prefix),
    reconnectOnError: (error) => (isFromFormerPrimary(error) ? resend : false),
  });
}

/** Opens a connection to this server, whatever its role is, as the same user as to the others. */
export function connectToServer(redisServers: RedisServers, address: RedisAddress, options: ConnectionOptions): Redis {
  if (typeof redisServers !== "string") return new Redis({ ...options, ...address, ...toAccessOptions(redisServers) });
  const url = new URL(redisServers);
  url.host = formatAddress(address);
  return new Redis(url.href, options);
}

const connectTimeoutMs = 1_500;
/** The connection to a Redis that disappeared without closing it is dropped after this time without a byte. */
const socketTimeoutMs = 5_000;
const longestReconnectDelayMs = 500;

/**
 * Opens a connection for work that somebody waits for. It fails fast: with the defaults of BullMQ and ioredis, a command
 * waits without limit while Redis is down. Each wait needs its own deadline, because a command in transit when its
 * connection breaks may never settle (ioredis issue 2193). ioredis' commandTimeout would set a timer for each command of
 * a batch.
 *
 * @param onError called for each connection error; ioredis reconnects by itself
 * @param options further options, or others than these
 */
export function connectFailingFast(
  location: QueueLocation,
  onError: (error: Error) => void,
  options: ConnectionOptions,
): Redis {
  const redis = connectToRedis(location, {
    enableOfflineQueue: false,
    connectTimeout: connectTimeoutMs,
    socketTimeout: socketTimeoutMs,
    maxRetriesPerRequest: 1,
    retryStrategy: (attempt) => Math.min(attempt * 50, longestReconnectDelayMs),
    ...options,
  });
  return redis.on("error", onError);
}

/** The primaries to which connections were opened. */
const leadsTo = new WeakMap<Socket, RedisAddress>();

/** Returns where a connection leads, or last led. Undefined: no primary was known. */
export function addressOf({ options, stream }: Redis): RedisAddress | undefined {
  const { Connector, host = "", port = 0 } = options;
  return Connector === undefined ? { host, port } : leadsTo.get(stream as Socket);
}

/**
 * Whether no other server is taking the place of the one that this connection leads to: see `isUndisputed` of
 * {@link sharePrimaries}.
 */
export async function leadsToUndisputedPrimary(redis: Redis, servers: RedisServers): Promise<boolean> {
  if (typeof servers === "string") return true;
  const primary = addressOf(redis);
  return primary !== undefined && sharePrimaries(servers).isUndisputed(primary);
}

/** Tells ioredis to reconnect, and to send the command again. */
const resend = 2;

/**
 * The server has become a replica or has given the slot away, and did nothing. UNBLOCKED ends a wait for events.
 * ioredis does not send a command again on a connection that has no offline queue, but rejects it.
 */
function isFromFormerPrimary(error: Error): boolean {
  return /^(MOVED|READONLY|UNBLOCKED) /.test(error.message);
}

/** A class, because ioredis constructs a connector for each connection, also for those that BullMQ duplicates. */
function createConnector(servers: RedisCluster | RedisSentinels, prefix: string) {
  const primaries = sharePrimaries(servers);

  return class PrimaryConnector extends AbstractConnector {
    #readyTimer: NodeJS.Timeout | undefined;

    constructor(options: unknown) {
      super((options as { disconnectTimeout: number }).disconnectTimeout);
    }

    /** Never rejects while the connection is wanted, because ioredis would give it up. */
    override async connect(): Promise<Socket> {
      this.connecting = true;
      delete this.firstError;
      const found = await primaries.find(prefix).catch((error: Error) => error);
      if (!this.connecting) throw new Error("Connection is closed.");
      if (found instanceof Error) {
        this.firstError = found;
        return new TcpSocket().destroy();
      }
      const stream = servers.isEncrypted === true ? connectTls(found) : connectTcp(found);
      this.stream = stream;
      leadsTo.set(stream, found);
      const stopWatching = primaries.watch(prefix, found, () => stream.destroy());
      this.#readyTimer = setTimeout(() => stream.destroy(), readyTimeoutMs);
      stream.once("error", (error) => {
        this.firstError = error;
      });
      stream.once("close", () => {
        stopWatching();
        clearTimeout(this.#readyTimer);
      });
      return stream;
    }

    /** Called with Redis' reply to INFO, before the connection is ready. */
    override check(info: { role?: string }): boolean {
      clearTimeout(this.#readyTimer);
      return info.role === undefined || info.role === "master";
    }
  };
}
