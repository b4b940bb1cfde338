import { Redis, type RedisOptions } from "ioredis";

/** Where Redis runs: the URL of a server. */
export type RedisServers = string;

export interface QueueLocation {
  redisServers: RedisServers;
  /** All keys of the queue begin with it. Its hash tag keeps them on one server. */
  prefix: string;
}

type ConnectionOptions = Omit<RedisOptions, "replyMapping">;

/** Opens a connection to the server that stores the keys with this prefix. */
export function connectToRedis({ redisServers }: QueueLocation, options: ConnectionOptions): Redis {
  return new Redis(redisServers, options);
}
