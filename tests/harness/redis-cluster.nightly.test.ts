import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { Network } from "./network.ts";
import { RedisCluster } from "./redis-cluster.ts";
import { killMachine } from "./redis-node.ts";
import { waitFor } from "./wait-for.ts";

/** The network needs more loopback addresses than macOS has. */
test.runIf(process.platform === "linux")(
  "a cluster fails over by itself and by hand, grows, shrinks, and keeps what clients write meanwhile",
  async () => {
    const dir = mkdtempSync(join(tmpdir(), "booking-events-cluster-"));
    onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
    const network = new Network({ delayMs: { least: 1, most: 5 } });
    onTestFinished(() => network.close());
    const cluster = await RedisCluster.start({ dir, primaries: 3, replicasOfEach: 1, nodeTimeoutMs: 1_000, network });
    onTestFinished(() => cluster.stop());
    const write = (key: string) =>
      waitFor(async () => (await cluster.primaryOf(key)).ask("SET", key, key), { timeoutMs: 20_000 });

    await write("{a}1");
    const first = await cluster.primaryOf("{a}");
    // Otherwise it may die with the machine.
    await waitFor(async () => expect(await first.ask("WAIT", 1, 1_000)).toBe(1));
    const revive = await killMachine(first);
    const second = await waitFor(() => cluster.primaryOf("{a}"), { timeoutMs: 20_000 });
    expect(second.name).not.toBe(first.name);
    await write("{a}2");
    await revive();
    await cluster.untilSettled();
    expect(await cluster.replicasOf(second)).toEqual([first]);

    await cluster.failOver(first);
    expect(await cluster.primaryOf("{a}")).toBe(first);
    await write("{a}3");

    const added = await cluster.addNode("redis-7");
    const slot = Number(await first.ask("CLUSTER", "KEYSLOT", "{a}"));
    await cluster.moveSlot(slot, first, added);
    expect(await waitFor(() => cluster.primaryOf("{a}"))).toBe(added);
    await write("{a}4");
    await cluster.moveSlot(slot, added, first);
    await cluster.removeNode(added);
    await cluster.untilSettled();
    const keys = ["{a}1", "{a}2", "{a}3", "{a}4"] as const;
    expect(await (await cluster.primaryOf("{a}")).ask("MGET", ...keys)).toEqual(keys);
  },
  60_000,
);
