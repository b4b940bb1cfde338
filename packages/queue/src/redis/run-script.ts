import { createHash } from "node:crypto";
import { Command, type Redis } from "ioredis";

export interface Script {
  text: string;
  /** Identifies the script to Redis once Redis has loaded it. */
  sha1: string;
}

export function defineScript(text: string): Script {
  return { text, sha1: createHash("sha1").update(text).digest("hex") };
}

/**
 * A work-around for ioredis 6.0.0, `Command.js` (docs/upstream.md).
 *
 * Runs a script like ioredis' own `defineCommand`, but releases the arguments as soon as there is an answer. ioredis
 * keeps them in closures that V8 allocates in the old generation, so every event would stay in memory, and be copied,
 * until the next full garbage collection. In measurements, most of the memory that survived minor collections was such
 * events.
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
