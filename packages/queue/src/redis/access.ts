import type { RedisOptions } from "ioredis";

export type AccessOptions = Pick<RedisOptions, "username" | "password" | "tls">;

/** @param access empty names and passwords count as absent */
export function toAccessOptions(access: {
  username?: string | undefined;
  password?: string | undefined;
  isEncrypted?: boolean | undefined;
}): AccessOptions {
  const { username, password, isEncrypted } = access;
  return {
    ...(username ? { username } : {}),
    ...(password ? { password } : {}),
    ...(isEncrypted ? { tls: {} } : {}),
  };
}
