import { createHash } from "node:crypto";
import { Command, type Redis } from "ioredis";

export interface Script {
  /** Lua. */
  text: string;
  /** By which Redis knows it, once it has seen it. */
  sha1: string;
}

export function defineScript(text: string): Script {
  return { text, sha1: createHash("sha1").update(text).digest("hex") };
}

/**
 * As ioredis' own `defineCommand` would run it, but the arguments are let go of as soon as there is an answer. ioredis
 * holds them by closures that V8 allocates among its old objects, so that every event would live, and be copied, until
 * the next full garbage collection: measured, most of what survived the collections in between.
 *
 * @throws what ioredis throws
 */
export async function runScript<Answer>(
  redis: Redis,
  script: Script,
  keys: string[],
  args: (string | number)[],
): Promise<Answer> {
  const run = async (name: string, textOrSha1: string) => {
    const command = new Command(name, [textOrSha1, keys.length, ...keys, ...args], { replyEncoding: "utf8" });
    try {
      return (await redis.sendCommand(command)) as Answer;
    } finally {
      command.args = [];
    }
  };
  try {
    return await run("evalsha", script.sha1);
  } catch (error) {
    if (error instanceof Error && error.message.startsWith("NOSCRIPT")) return run("eval", script.text);
    throw error;
  }
}
