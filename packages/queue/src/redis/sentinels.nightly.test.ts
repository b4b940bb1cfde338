import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { uniquePrefix, waitFor } from "@booking-events/harness";
import { Network } from "@booking-events/harness/network";
import { killMachine } from "@booking-events/harness/redis-node";
import { type RedisSentinels, startRedisSentinels } from "@booking-events/harness/redis-sentinels";
import type { RedisServers } from "@booking-events/runtime";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { createProducer } from "../add/producer.ts";
import { queueName } from "../events/queue-name.ts";
import { findSentinelProblems } from "../operate/find-sentinel-problems.ts";
import { openQueuedEvents } from "../operate/queued-events.ts";
import { anEvent, longEnough, postAndConsume, untilServedAgain } from "../testing/post-and-consume.ts";

let dir: string;
/** Data is under way for some time, and is lost when a machine dies. */
let network: Network;
let servers: RedisSentinels;

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), "booking-events-engine-"));
  network = new Network({ delayMs: { least: 5, most: 10 } });
  servers = await startRedisSentinels({ dir, downAfterMs: 1_000, network });
}, 60_000);

afterAll(async () => {
  await servers?.stop();
  network?.close();
  rmSync(dir, { recursive: true, force: true });
});

function knownToSentinels({ sentinelPassword = servers.password, name = servers.name } = {}): RedisServers {
  const sentinels = servers.sentinels.map(({ port }) => ({ host: "127.0.0.1", port }));
  return { sentinels, name, password: servers.password, sentinelPassword };
}

/** Posts and consumes events in a queue of their own. Resolves when the first have arrived. */
async function run() {
  const running = postAndConsume({ redisServers: knownToSentinels(), prefix: uniquePrefix() }, 1);
  onTestFinished(running.stop);
  await waitFor(() => running.delivered.size > 0, longEnough);
  return running;
}

describe("behind sentinels", { timeout: 90_000 }, () => {
  test("a name that they do not know is named as the reason", async () => {
    const redisServers = knownToSentinels({ name: "other" });
    const producer = createProducer({ redisServers, prefix: uniquePrefix(), onError: () => {} });
    onTestFinished(() => producer.close());
    await waitFor(async () =>
      expect(await producer.findProblems()).toEqual([expect.stringContaining("correct REDIS_SENTINEL_NAME")]),
    );
  });

  test("a wrong password for the sentinels is named as the reason", async () => {
    const redisServers = knownToSentinels({ sentinelPassword: "wrong" });
    const producer = createProducer({ redisServers, prefix: uniquePrefix(), onError: () => {} });
    onTestFinished(() => producer.close());
    await waitFor(async () =>
      expect(await producer.findProblems()).toEqual([
        'Redis refuses: "WRONGPASS invalid username-password pair or user is disabled". Correct the user name or the password: ' +
          "REDIS_SENTINEL_USERNAME and REDIS_SENTINEL_PASSWORD.",
      ]),
    );
  });

  test("an operator's command has the replicas rewrite their append-only files, too", async () => {
    const queue = { redisServers: knownToSentinels(), prefix: uniquePrefix(), shardCount: 1 };
    const queued = await openQueuedEvents(queue);
    onTestFinished(() => queued.close());
    const primary = await servers.primary();
    const others = servers.nodes.filter((node) => node !== primary);
    const { problem, replicas } = await queued.rewriteAppendOnlyFiles();
    expect(problem).toBeUndefined();
    const rewritten = others.map(({ port }) => ({ host: "127.0.0.1", port, problem: undefined }));
    expect(replicas.toSorted((a, b) => a.port - b.port)).toEqual(rewritten.toSorted((a, b) => a.port - b.port));
  });

  test("a failover by hand loses nothing", async () => {
    const running = await run();
    await servers.failOver();
    await untilServedAgain(running);
    await running.untilNothingIsMissing();
    await servers.untilSettled();
  });

  test("while another primary takes its place, the old one accepts nothing, though a replica still follows it", async () => {
    const prefix = uniquePrefix();
    const producer = createProducer({
      redisServers: knownToSentinels(),
      prefix,
      replicasToConfirm: 1,
      onError: () => {},
    });
    onTestFinished(() => producer.close());
    const accepted: string[] = [];
    const post = async () => {
      const event = anEvent();
      const isAccepted = await producer.enqueue(event).then(
        () => true,
        () => false,
      );
      if (isAccepted) accepted.push(event.eventId);
      else await sleep(10);
      return isAccepted;
    };
    await waitFor(post, longEnough);
    const old = await servers.primary();
    await servers.sentinels[0]?.ask("SENTINEL", "FAILOVER", servers.name);
    while ((await servers.primary().catch(() => old)) === old) await post();
    await waitFor(post, longEnough);
    await servers.untilSettled();
    const primary = await servers.primary();
    const isKept = await Promise.all(
      accepted.map((id) => primary.ask<number>("EXISTS", `${prefix}:${queueName}:${id}`)),
    );
    expect(accepted.filter((_, index) => isKept[index] !== 1)).toEqual([]);
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

  // The last test: for 30 s after a freeze, a sentinel replaces no primary.
  test("events are refused while most sentinels are gone, and an operator is told why", async () => {
    const running = await run();
    expect(await findSentinelProblems(knownToSentinels())).toEqual([]);
    const gone = servers.sentinels.slice(0, 2);
    for (const { server } of gone) server.kill("SIGSTOP");
    try {
      await waitFor(async () =>
        expect(await running.producer.findProblems()).toEqual([
          expect.stringMatching(/^Most Sentinels do not confirm/),
        ]),
      );
      const before = running.accepted.size;
      await expect(running.producer.enqueue(anEvent())).rejects.toThrow("could not be queued");
      expect(running.accepted.size).toBe(before);
      expect(await findSentinelProblems(knownToSentinels())).toEqual([
        expect.stringMatching(
          /^Too few sentinels could replace Redis' primary.*: \S+ does not answer; \S+ does not answer; /,
        ),
      ]);
    } finally {
      for (const { server } of gone) server.kill("SIGCONT");
    }
    await untilServedAgain(running);
    await running.untilNothingIsMissing();
  });
});
