import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { Network } from "./network.ts";
import { killMachine } from "./redis-node.ts";
import { startRedisSentinels } from "./redis-sentinels.ts";
import { waitFor } from "./wait-for.ts";

/** The network needs more loopback addresses than macOS has. */
test.runIf(process.platform === "linux")(
  "Sentinels promote a replica when the primary's machine dies, and when they are told to",
  async () => {
    const dir = mkdtempSync(join(tmpdir(), "booking-events-sentinels-"));
    onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
    const network = new Network({ delayMs: { least: 1, most: 5 } });
    onTestFinished(() => network.close());
    const redis = await startRedisSentinels({
      dir,
      downAfterMs: 1_000,
      infoIntervalMs: 500,
      network,
    });
    onTestFinished(redis.stop);

    const first = await redis.primary();
    await first.ask("SET", "a", "1");
    await first.ask("WAIT", 1, 1_000);
    const revive = await killMachine(first);
    const second = await waitFor(
      async () => {
        const primary = await redis.primary();
        return primary !== first && primary;
      },
      { timeoutMs: 20_000 },
    );
    expect(await second.ask("GET", "a")).toBe("1");
    await revive();
    await redis.untilSettled();
    expect(await first.ask("GET", "a")).toBe("1");

    await redis.failOver();
    const third = await redis.primary();
    expect(third).not.toBe(second);
  },
  60_000,
);
