import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { uniquePrefix, waitFor } from "@booking-events/harness";
import { Network } from "@booking-events/harness/network";
import { RedisCluster } from "@booking-events/harness/redis-cluster";
import { killMachine, type RedisNode } from "@booking-events/harness/redis-node";
import type { RedisServers } from "@booking-events/runtime";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { createProducer } from "../add/producer.ts";
import { changeQueue } from "../operate/change-queue.ts";
import { examineRedis } from "../operate/examine-redis.ts";
import { openQueuedEvents } from "../operate/queued-events.ts";
import { anEvent, longEnough, postAndConsume, untilServedAgain } from "../testing/post-and-consume.ts";

let dir: string;
/** Data is under way for some time, and is lost when a machine dies. */
let network: Network;
let cluster: RedisCluster;

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), "booking-events-engine-"));
  network = new Network({ delayMs: { least: 5, most: 10 } });
  cluster = await RedisCluster.start({ dir, primaries: 3, replicasOfEach: 1, nodeTimeoutMs: 1_000, network });
}, 60_000);

afterAll(async () => {
  await cluster?.stop();
  network?.close();
  rmSync(dir, { recursive: true, force: true });
});

/** @param named the nodes that the operator named */
function serversAt(named: readonly RedisNode[], password = cluster.password): RedisServers {
  return { cluster: named.map(({ port }) => ({ host: "127.0.0.1", port })), password };
}

/** Posts and consumes events in a queue of their own. Resolves when the first have arrived. */
async function run(replicasToConfirm = 0) {
  const prefix = uniquePrefix();
  const running = postAndConsume({ redisServers: serversAt(cluster.nodes), prefix }, replicasToConfirm);
  onTestFinished(running.stop);
  await waitFor(() => running.delivered.size > 0);
  return { ...running, prefix };
}

async function untilPrimary(node: RedisNode | undefined): Promise<void> {
  await waitFor(async () => (await cluster.primaries()).some((primary) => primary === node), longEnough);
}

describe("in a cluster", { timeout: 90_000 }, () => {
  test("any queue is found through any node, and events get through", async () => {
    const prefixes = Array.from({ length: 6 }, uniquePrefix);
    for (const [index, prefix] of prefixes.entries()) {
      const named = cluster.nodes[index % cluster.nodes.length] as RedisNode;
      const running = postAndConsume({ redisServers: serversAt([named]), prefix });
      onTestFinished(running.stop);
      await waitFor(() => running.delivered.size > 0);
      await running.untilNothingIsMissing();
    }
    const owners = await Promise.all(prefixes.map((prefix) => cluster.primaryOf(prefix)));
    expect(new Set(owners).size).toBeGreaterThan(1);
  });

  test("a wrong password is named as the reason", async () => {
    const redisServers = serversAt(cluster.nodes, "wrong");
    const producer = createProducer({ redisServers, prefix: uniquePrefix(), onError: () => {} });
    onTestFinished(() => producer.close());
    await waitFor(async () =>
      expect(await producer.findProblems()).toEqual([
        'Redis refuses: "WRONGPASS invalid username-password pair or user is disabled". Correct the user name or the password: ' +
          "REDIS_USERNAME and REDIS_PASSWORD.",
      ]),
    );
  });

  test("an operator sees the settings that a failover depends on", async () => {
    const location = { redisServers: serversAt(cluster.nodes), prefix: uniquePrefix(), replicasToConfirm: 2 };
    expect(await examineRedis(location)).toMatchObject({
      durabilityProblems: [expect.stringMatching(/^Redis has 1 replicas that follow it, but 2 must confirm/)],
      minReplicasToWrite: 0,
      requiresFullCoverage: false,
      replicaCount: 1,
    });
  });

  test("an operator's command has the replica rewrite its append-only file, too", async () => {
    const prefix = uniquePrefix();
    const queued = await openQueuedEvents({ redisServers: serversAt(cluster.nodes), prefix, shardCount: 1 });
    onTestFinished(() => queued.close());
    const [replica] = await cluster.replicasOf(await cluster.primaryOf(prefix));
    expect(await queued.rewriteAppendOnlyFiles()).toEqual({
      problem: undefined,
      replicas: [{ host: "127.0.0.1", port: replica?.port, problem: undefined }],
    });
  });

  test("a failover by hand loses nothing", async () => {
    const running = await run();
    const primary = await cluster.primaryOf(running.prefix);
    const [replica] = await cluster.replicasOf(primary);
    await cluster.failOver(replica as RedisNode);
    await untilServedAgain(running);
    await running.untilNothingIsMissing();
    await cluster.untilSettled();
  });

  test("a frozen primary is left as soon as another one has taken over", async () => {
    const running = await run();
    const primary = await cluster.primaryOf(running.prefix);
    const [replica] = await cluster.replicasOf(primary);
    primary.server.kill("SIGSTOP");
    try {
      await untilPrimary(replica);
      await untilServedAgain(running);
    } finally {
      primary.server.kill("SIGCONT");
    }
    await cluster.untilSettled();
    await running.stopPosting();
  });

  test("a primary whose machine dies is replaced", async () => {
    const running = await run();
    const primary = await cluster.primaryOf(running.prefix);
    const [replica] = await cluster.replicasOf(primary);
    const revive = await killMachine(primary);
    await untilPrimary(replica);
    await untilServedAgain(running);
    await revive();
    await cluster.untilSettled();
    await running.stopPosting();
  });

  test("a primary that is cut off from the other nodes, but not from us, is left", async () => {
    const running = await run();
    const primary = await cluster.primaryOf(running.prefix);
    const [replica] = await cluster.replicasOf(primary);
    const repair = primary.isolate();
    await untilPrimary(replica);
    await untilServedAgain(running);
    repair();
    await cluster.untilSettled();
    await running.stopPosting();
  });

  test("a slot is moved under load without losing an event", async () => {
    const running = await run();
    const queue = { redisServers: serversAt(cluster.nodes), prefix: running.prefix, shardCount: 1 };
    await changeQueue(queue, { isPaused: true });
    await waitFor(() => running.missing().length > 300);
    await changeQueue(queue, { isPaused: false });
    const from = await cluster.primaryOf(running.prefix);
    const to = (await cluster.primaries()).find((node) => node !== from) as RedisNode;
    const slot = Number(await from.ask("CLUSTER", "KEYSLOT", running.prefix));
    await cluster.moveSlot(slot, from, to);
    await untilServedAgain(running);
    expect(await cluster.primaryOf(running.prefix)).toBe(to);
    await running.untilNothingIsMissing();
    expect(running.missingJobs).toEqual([]);
    await cluster.moveSlot(slot, to, from);
    await cluster.untilSettled();
  });

  test("the clock of another primary is not taken for time that this process has lost", async () => {
    const running = await run();
    const now = performance.now.bind(performance);
    const clock = vi.spyOn(performance, "now").mockImplementation(now);
    onTestFinished(() => clock.mockRestore());
    const [replica] = await cluster.replicasOf(await cluster.primaryOf(running.prefix));
    running.producer.onConnected(() => clock.mockImplementation(() => now() - 3_000));
    await cluster.failOver(replica as RedisNode);
    await untilServedAgain(running);
    await running.untilNothingIsMissing();
    await cluster.untilSettled();
  });

  describe("with a replica to confirm each event", () => {
    test("what was accepted survives the death of the primary's machine", async () => {
      const running = await run(1);
      const revive = await killMachine(await cluster.primaryOf(running.prefix));
      await waitFor(() => running.refusals.length > 0);
      await revive();
      await untilServedAgain(running);
      await running.untilNothingIsMissing();
      await cluster.untilSettled();
    });

    test("events are refused while none confirms, and an operator is told why", async () => {
      const running = await run(1);
      const [replica] = await cluster.replicasOf(await cluster.primaryOf(running.prefix));
      replica?.server.kill("SIGSTOP");
      try {
        await waitFor(() =>
          running.refusals.some(({ error }) => (error.cause as Error).message.startsWith("Only 0 of 1 replicas")),
        );
        await running.stopPosting();
        await waitFor(async () =>
          expect(await running.producer.findProblems()).toEqual([
            expect.stringMatching(/^Redis has 0 replicas that follow it, but 1 must confirm each event\. Check/),
          ]),
        );
      } finally {
        replica?.server.kill("SIGCONT");
      }
      await waitFor(async () => expect(await running.producer.findProblems()).toEqual([]), longEnough);
      await cluster.untilSettled();
    });

    test("a confirmation by the replicas of another primary does not count", async () => {
      const prefix = uniquePrefix();
      const primary = await cluster.primaryOf(prefix);
      const [replica] = await cluster.replicasOf(primary);
      const other = (await cluster.primaries()).find((node) => node !== primary) as RedisNode;
      const proxy = await startProxy(primary.port);
      onTestFinished(proxy.close);
      const redisServers = `redis://:${cluster.password}@127.0.0.1:${proxy.port}`;
      const producer = createProducer({ redisServers, prefix, replicasToConfirm: 1, onError: () => {} });
      onTestFinished(() => producer.close());
      await waitFor(async () => expect(await producer.findProblems()).toEqual([]));
      replica?.server.kill("SIGSTOP");
      try {
        const enqueuing = producer.enqueue(anEvent()).catch((error: Error) => error);
        await waitFor(async () => expect(await primary.ask("CLIENT", "LIST")).toMatch(/cmd=wait(aof)? /));
        // ioredis sends the unanswered WAIT again.
        proxy.leadTo(other.port);
        expect(await enqueuing).toMatchObject({
          name: "EnqueueError",
          cause: { message: "The connection was replaced before replicas confirmed." },
        });
      } finally {
        replica?.server.kill("SIGCONT");
      }
      await cluster.untilSettled();
    });
  });
});

/** Passes connections on to a port of this machine, until they are led to another one. */
async function startProxy(firstPort: number) {
  let targetPort = firstPort;
  const sockets = new Set<Socket>();
  const server = createServer((incoming) => {
    const outgoing = connect({ host: "127.0.0.1", port: targetPort });
    for (const socket of [incoming, outgoing]) sockets.add(socket.on("error", () => {}));
    incoming.pipe(outgoing).pipe(incoming);
  });
  const cutAll = () => {
    for (const socket of sockets) socket.destroy();
  };
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    port: (server.address() as AddressInfo).port,
    leadTo(port: number): void {
      targetPort = port;
      cutAll();
    },
    close(): void {
      server.close();
      cutAll();
    },
  };
}
