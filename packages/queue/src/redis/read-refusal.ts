import { once } from "node:events";
import { connect } from "node:net";
import type { Redis } from "ioredis";
import { addressOf } from "./connect-to-redis.ts";

const limitMs = 500;

/** What ioredis reports when Redis has ended a new connection, whatever Redis has said. */
const ended = new Set(["ECONNRESET", "EPIPE"]);

/**
 * Before Redis closes a new connection that it refuses, it says why: it has too many, or is in protected mode. ioredis
 * drops that, since it answers no command. So this connects once more, and listens.
 *
 * @returns an error as ioredis has for what Redis refuses; otherwise the given one
 */
export async function readRefusal(redis: Redis, error: Error & { code?: unknown }): Promise<Error> {
  const address = addressOf(redis);
  const isEnded = ended.has(String(error.code)) || error.message.startsWith("Connection is closed");
  if (!isEnded || address === undefined || redis.options.tls !== undefined) return error;
  const socket = connect(address).setTimeout(limitMs, () => socket.destroy());
  try {
    const [data] = (await Promise.race([once(socket, "data"), once(socket, "close").then(() => [""])])) as [unknown];
    const [, sentence] = /^-([^\r\n]+)/.exec(String(data)) ?? [];
    return sentence === undefined ? error : Object.assign(new Error(sentence), { name: "ReplyError" });
  } catch {
    return error;
  } finally {
    socket.destroy();
  }
}
