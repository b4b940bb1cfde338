import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { uniquePrefix, waitFor } from "@booking-events/harness";
import { createNetwork, type Network } from "@booking-events/harness/network";
import { killMachine } from "@booking-events/harness/redis-node";
import { type RedisSentinels, startRedisSentinels } from "@booking-events/harness/redis-sentinels";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { createProducer } from "./producer.ts";
import type { RedisServers } from "./redis-servers.ts";
import { longEnough, postAndConsume, untilServedAgain } from "./testing/post-and-consume.ts";

let dir: string;
/** Data is under way for some time, and is lost when a machine dies. */
let network: Network;
let servers: RedisSentinels;

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), "booking-events-engine-"));
  network = createNetwork({ delayMs: { least: 5, most: 10 } });
  servers = await startRedisSentinels({ dir, replicas: 2, sentinels: 3, downAfterMs: 1_000, network });
}, 60_000);

afterAll(async () => {
  await servers?.stop();
  network?.close();
  rmSync(dir, { recursive: true, force: true });
});

function knownToSentinels({ sentinelPassword = servers.password } = {}): RedisServers {
  const sentinels = servers.sentinels.map(({ port }) => ({ host: "127.0.0.1", port }));
  return { sentinels, name: servers.name, password: servers.password, sentinelPassword };
}

/** Posts and consumes events in a queue of their own. Resolves when the first have arrived. */
async function run() {
  const running = postAndConsume({ redisServers: knownToSentinels(), prefix: uniquePrefix() }, 1);
  onTestFinished(running.stop);
  await waitFor(() => running.delivered.size > 0, longEnough);
  return running;
}

describe("behind sentinels", { timeout: 90_000 }, () => {
  test("a wrong password for the sentinels is named as the reason", async () => {
    const redisServers = knownToSentinels({ sentinelPassword: "wrong" });
    const producer = createProducer({ redisServers, prefix: uniquePrefix(), onError: () => {} });
    onTestFinished(() => producer.close());
    await waitFor(async () =>
      expect(await producer.findProblems()).toEqual([
        "Redis does not answer (WRONGPASS). Check that it runs and that REDIS_SENTINELS is right.",
      ]),
    );
  });

  test("a failover by hand loses nothing", async () => {
    const running = await run();
    await servers.failOver();
    await untilServedAgain(running);
    await running.untilNothingIsMissing();
    await servers.untilSettled();
  });

  test("what was accepted survives the death of the primary's machine", async () => {
    const running = await run();
    const primary = await servers.primary();
    const revive = await killMachine(primary);
    await waitFor(async () => (await servers.primary()) !== primary, longEnough);
    await untilServedAgain(running);
    await running.untilNothingIsMissing();
    await revive();
    await servers.untilSettled();
  });

  test("a frozen primary is left as soon as another one has taken over", async () => {
    const running = await run();
    const primary = await servers.primary();
    primary.server.kill("SIGSTOP");
    try {
      await waitFor(async () => (await servers.primary()) !== primary, longEnough);
      await untilServedAgain(running);
    } finally {
      primary.server.kill("SIGCONT");
    }
    await running.untilNothingIsMissing();
    await servers.untilSettled();
  });

  test("a frozen sentinel delays nothing", async () => {
    const [sentinel] = servers.sentinels;
    sentinel?.server.kill("SIGSTOP");
    try {
      await run();
    } finally {
      sentinel?.server.kill("SIGCONT");
    }
  });
});
