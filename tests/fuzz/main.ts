import { randomInt } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { version } from "@booking-events/runtime";
import { build } from "@booking-events/scripts/build";
import { findOrInstallRedis, startRedis } from "@booking-events/scripts/services";
import { stopRequested } from "@booking-events/scripts/stop-signals";
import { checkIngest } from "./check-ingest.ts";

const help = `Starts an ingest and sends it random bytes over real sockets, most of them wrong requests. Checks that it
answers or closes each connection, never answers 500, and works afterwards as before.

  npm run fuzz -- [--connections N] [--seed S]

  --connections N  how many; each sends one request or more, and some are reset. Default: 20000
  --seed S         a whole number that determines the bytes. Default: random

Exit code: 0 when nothing is wrong; 1 otherwise, with the seed and the smallest bytes that show the fault.
`;

const { values } = parseArgs({
  options: {
    connections: { type: "string", default: "20000" },
    seed: { type: "string", default: String(randomInt(2 ** 31)) },
    help: { type: "boolean", default: false },
    version: { type: "boolean", default: false },
  },
});

const say = (line: string) => void process.stdout.write(`${line}\n`);
if (values.help) say(help);
else if (values.version) say(version);
else process.exitCode = await main(Number(values.connections), Number(values.seed));

async function main(connections: number, seed: number): Promise<number> {
  const signal = stopRequested({ force: () => process.exit(130) });
  await findOrInstallRedis({ say, signal });
  await build(signal);
  const folder = await mkdtemp(join(tmpdir(), "booking-events-fuzz-"));
  const redis = await startRedis({ dir: folder });
  try {
    say(`Seed ${seed}, ${connections} connections.`);
    const statuses = await checkIngest({ redisUrl: redis.url, queuePrefix: "{fuzz}", connections, seed });
    for (const [status, count] of [...statuses].sort()) say(`  ${status}  ${String(count).padStart(7)}`);
    say("Passed.");
    return 0;
  } catch (error) {
    say(`FAILED. ${error instanceof Error ? error.message : error}`);
    return 1;
  } finally {
    await redis.stop();
    await rm(folder, { recursive: true, force: true });
  }
}
