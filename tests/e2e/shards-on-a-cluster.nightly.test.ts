import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { waitFor } from "@booking-events/harness";
import { Network, noDelay } from "@booking-events/harness/network";
import { RedisCluster } from "@booking-events/harness/redis-cluster";
import type { RedisNode } from "@booking-events/harness/redis-node";
import { digestSubject, formatShards, locateShard, shardNumbers, shardOf } from "@booking-events/queue";
import { afterAll, beforeAll, expect, test } from "vitest";
import { postOnce } from "./post-event.ts";
import { runOps } from "./run-ops.ts";
import { prepareSurroundings, type RunningApp } from "./surroundings.ts";

const secret = "a-secret-of-the-cluster-tests-012345678901";
const shardCount = 8;
const surroundings = prepareSurroundings(secret);
let folder: string;
let network: Network;
let cluster: RedisCluster;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "booking-events-shards-"));
  network = new Network({ delayMs: noDelay });
  cluster = await RedisCluster.start({ dir: folder, primaries: 3, replicasOfEach: 0, nodeTimeoutMs: 2_000, network });
}, 60_000);

afterAll(async () => {
  await cluster?.stop();
  network?.close();
  await rm(folder, { recursive: true, force: true });
});

const onCluster = () => ({
  ...surroundings().environment,
  REDIS_URL: "",
  REDIS_CLUSTER: cluster.addresses.join(","),
  REDIS_PASSWORD: cluster.password,
  QUEUE_SHARDS: String(shardCount),
});

/** @returns the shards of each node */
async function findNodes(): Promise<Map<RedisNode, number[]>> {
  const prefix = surroundings().environment["QUEUE_PREFIX"] ?? "";
  const nodes = new Map<RedisNode, number[]>();
  for (const shard of shardNumbers(shardCount)) {
    const node = await cluster.primaryOf(locateShard({ redisServers: "", prefix }, shard).prefix);
    nodes.set(node, [...(nodes.get(node) ?? []), shard]);
  }
  return nodes;
}

/** @returns a new booking of each shard */
function inventBookings(round: string): string[] {
  const references = new Map<number, string>();
  for (let number = 0; references.size < shardCount; number += 1) {
    const reference = `${round}-${number}`;
    const payload = { consumerTripPartnerExternalReference: reference };
    references.set(shardOf(digestSubject({ partner: "acme", payload }), shardCount), reference);
  }
  return shardNumbers(shardCount).map((shard) => references.get(shard) ?? "");
}

async function post(ingest: RunningApp, references: string[]): Promise<number[]> {
  return Promise.all(
    references.map(async (reference) => {
      const response = await postOnce(ingest, { secret, reference });
      await response.arrayBuffer();
      return response.status;
    }),
  );
}

async function untilApplied(references: string[]): Promise<void> {
  await waitFor(
    async () => {
      const { rows } = await surroundings().pool.query<{ reference: string }>("select reference from bookings");
      expect(rows.map(({ reference }) => reference)).toEqual(expect.arrayContaining(references));
    },
    { timeoutMs: 40_000 },
  );
}

async function readStatus(): Promise<{ queue: { problems: string[]; shardCount: number } }> {
  return JSON.parse((await runOps(["status", "--json"], onCluster())).stdout);
}

test("while a node is frozen, its shards' events are refused, and all others are accepted and applied", async () => {
  const environment = onCluster();
  const [ingest, worker] = await Promise.all([
    surroundings().start("ingest", { environment }),
    surroundings().start("worker", { environment }),
  ]);
  const all = shardNumbers(shardCount);
  const before = inventBookings("before");
  expect(await post(ingest, before)).toEqual(all.map(() => 200));
  await untilApplied(before);
  const nodes = [...(await findNodes())].sort(([, one], [, other]) => one.length - other.length);
  const [node, down = []] = nodes[0] ?? [];
  expect(nodes.length).toBeGreaterThan(1);

  node?.server.kill("SIGSTOP");
  try {
    const saysWhich = expect.stringMatching(new RegExp(`^Shards? ${formatShards(down)}: Redis does not answer`));
    await waitFor(async () =>
      expect(await ingest.readiness()).toMatchObject({
        status: 200,
        body: { warnings: expect.arrayContaining([saysWhich]) },
      }),
    );
    const meanwhile = inventBookings("meanwhile");
    expect(await post(ingest, meanwhile)).toEqual(all.map((shard) => (down.includes(shard) ? 503 : 200)));
    await untilApplied(meanwhile.filter((_, shard) => !down.includes(shard)));
    expect((await readStatus()).queue).toMatchObject({ problems: [saysWhich], shardCount });
    expect(await worker.metrics()).toMatch(/^booking_events_redis_up\{.*\} 0$/m);
    // It ends by itself, with 1 if it has given up waiting for the frozen node.
    expect([0, 1]).toContain(await worker.stop("SIGTERM"));
  } finally {
    node?.server.kill("SIGCONT");
  }

  const after = inventBookings("after");
  await waitFor(async () => expect(await post(ingest, after)).toEqual(all.map(() => 200)), { timeoutMs: 30_000 });
  const another = await surroundings().start("worker", { environment });
  await untilApplied(after);
  expect(await readStatus()).toMatchObject({ queue: { problems: [] } });
  expect(await another.stop("SIGTERM")).toBe(0);
}, 180_000);
