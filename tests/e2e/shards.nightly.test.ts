import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { waitFor } from "@booking-events/harness";
import { digestSubject, locateShard, queueName, shardNumbers, shardOf } from "@booking-events/queue";
import { Redis } from "ioredis";
import { afterEach, beforeEach, expect, test } from "vitest";
import { postOnce } from "./post-event.ts";
import { printedByOps, runOps } from "./run-ops.ts";
import { type SteadyLoad, startLoad, writeLoadPartners } from "./steady-load.ts";
import { prepareSurroundings, type RunningApp } from "./surroundings.ts";

const secret = "a-secret-of-the-shard-tests-01234567890123";
const surroundings = prepareSurroundings(secret);
let redis: Redis;
let load: SteadyLoad | undefined;

beforeEach(() => {
  redis = new Redis(surroundings().environment["REDIS_URL"] ?? "");
});

afterEach(async () => {
  await load?.close();
  load = undefined;
  redis.disconnect();
});

/** For a busy machine. */
const patiently = { timeoutMs: 30_000 };
const withShards = (count: number) => ({ environment: { QUEUE_SHARDS: String(count) } });

function keyOf(shard: number, name: string): string {
  const { REDIS_URL: redisServers = "", QUEUE_PREFIX: prefix = "" } = surroundings().environment;
  return `${locateShard({ redisServers, prefix }, shard).prefix}:${name}`;
}

function ops(...args: string[]): Promise<string> {
  return printedByOps(args, surroundings().environment);
}

/** @returns one reference for each shard */
function referencesOf(shardCount: number): string[] {
  const references = new Map<number, string>();
  for (let number = 0; references.size < shardCount; number += 1) {
    const payload = { consumerTripPartnerExternalReference: `TRIP-${number}` };
    references.set(shardOf(digestSubject({ partner: "acme", payload }), shardCount), `TRIP-${number}`);
  }
  return shardNumbers(shardCount).map((shard) => references.get(shard) ?? "");
}

/** An ingest on a busy machine may refuse an event because it is overloaded itself, which says nothing of a shard. */
async function post(ingest: RunningApp, reference: string): Promise<{ status: number; eventId: string }> {
  for (;;) {
    const response = await postOnce(ingest, { secret, reference });
    const { eventId = "", code } = (await response.json()) as { eventId?: string; code?: string };
    if (code !== "overloaded") return { status: response.status, eventId };
    await sleep(100);
  }
}

async function countApplied(): Promise<number> {
  const { rows } = await surroundings().pool.query<{ count: number }>("select count(*)::int from booking_events");
  return rows[0]?.count ?? 0;
}

async function appliedReferences(): Promise<string[]> {
  const { rows } = await surroundings().pool.query<{ reference: string }>("select reference from booking_events");
  return rows.map(({ reference }) => reference);
}

async function warningsOf(app: RunningApp): Promise<string[]> {
  return ((await app.readiness()).body as { warnings?: string[] }).warnings ?? [];
}

test("while one shard cannot store events, only its events are refused", async () => {
  const references = referencesOf(4);
  const tooFarAhead = (Date.now() + 3_600_000) * 1_000;
  await redis.set(keyOf(2, "sequence"), tooFarAhead);
  const ingest = await surroundings().start("ingest", withShards(4));
  expect(await ingest.readiness()).toMatchObject({ status: 200 });
  expect(await warningsOf(ingest)).toContainEqual(expect.stringMatching(/^Shard 2: The last sequence number/));
  expect(await ingest.metrics()).toMatch(/^ingest_shards_unavailable\{.*\} 1$/m);
  const statuses = async () => {
    const answers = await Promise.all(references.map((reference) => post(ingest, reference)));
    return answers.map(({ status }) => status);
  };
  expect(await statuses()).toEqual([200, 200, 503, 200]);

  await redis.del(keyOf(2, "sequence"));
  await waitFor(async () => expect(await statuses()).toEqual([200, 200, 200, 200]));

  for (const shard of shardNumbers(4)) await redis.set(keyOf(shard, "sequence"), tooFarAhead);
  await waitFor(async () =>
    expect(await ingest.readiness()).toMatchObject({
      status: 503,
      body: { problems: [expect.stringMatching(/^Shards 0-3: /)] },
    }),
  );
});

test("a shard whose events no worker can take does not stop the others, and its events wait", async () => {
  const references = referencesOf(4);
  const active = keyOf(2, `${queueName}:active`);
  await redis.set(active, "not a list");
  // One slot for each shard.
  const environment = { ...withShards(4).environment, CONCURRENCY: "4" };
  const [ingest, worker] = await Promise.all([
    surroundings().start("ingest", { environment }),
    surroundings().start("worker", { environment }),
  ]);
  const rounds = 3;
  for (let round = 0; round < rounds; round += 1) {
    const answers = await Promise.all(references.map((reference) => post(ingest, reference)));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  }
  const [stuck, ...others] = [references[2] ?? "", references[0] ?? "", references[1] ?? "", references[3] ?? ""];
  const threeOf = (names: string[]) => names.flatMap((name) => Array.from({ length: rounds }, () => name)).toSorted();
  await waitFor(async () => expect((await appliedReferences()).toSorted()).toEqual(threeOf(others)), patiently);

  await redis.del(active);
  await waitFor(
    async () => expect((await appliedReferences()).toSorted()).toEqual(threeOf([...others, stuck])),
    patiently,
  );
  expect(await worker.stop("SIGTERM")).toBe(0);
}, 60_000);

test("commands and lookup with a wrong QUEUE_SHARDS miss no shard", async () => {
  const references = referencesOf(4);
  const [ingest, lookup] = await Promise.all([
    surroundings().start("ingest", withShards(4)),
    surroundings().start("lookup", withShards(1)),
  ]);
  await ops("migrate");
  const posted = await Promise.all(references.map((reference) => post(ingest, reference)));
  for (const { eventId } of posted) {
    await waitFor(async () => {
      const answer = await fetch(`${lookup.url}/booking-event/receipt/${secret}/${eventId}`);
      expect(await answer.json()).toMatchObject({ eventId, status: "waiting" });
    });
  }
  const [, , , last = ""] = references;
  expect(await ops("bookings", "show", "acme", last)).toContain(posted.at(-1)?.eventId);
  const status = await runOps(["status", "--json"], surroundings().environment);
  expect(JSON.parse(status.stdout).queue).toMatchObject({ shardCount: 4, counts: { waiting: 4 }, ingestCount: 1 });
  const [first = "", second = ""] = references.slice(1);
  const erased = await ops("guests", "erase", "--partner", "acme", "--reference", first, "--reason", "x", "--yes");
  expect(erased).toContain("1 events in the queue.");
  expect(await redis.llen(keyOf(1, `${queueName}:wait`))).toBe(0);

  expect(await ops("queue", "pause")).toMatch(/^The queue is paused/);
  const worker = await surroundings().start("worker", withShards(4));
  await waitFor(async () => expect(await warningsOf(worker)).toEqual([expect.stringMatching(/paused/)]));
  expect(await appliedReferences()).not.toContain(second);
  expect(await ops("queue", "resume")).toMatch(/^The queue is resumed/);
  await waitFor(async () => expect(await appliedReferences()).toContain(second), patiently);
  await waitFor(async () => expect(await countApplied()).toBe(4), patiently);
}, 60_000);

test("the number of shards changes under load, up and down: nothing is lost or refused, and all states are right", async () => {
  const { environment } = surroundings();
  const partnersFile = join(environment["PARTNERS_FILE"] ?? "", "../load-partners.json");
  const secretOf = writeLoadPartners(partnersFile);
  const ofLoad = { ...environment, PARTNERS_FILE: partnersFile };
  const ingestUrls: string[] = [];
  const startIngest = async (count: number) => {
    const ingest = await surroundings().start("ingest", {
      environment: { PARTNERS_FILE: partnersFile, QUEUE_SHARDS: String(count) },
    });
    ingestUrls.push(ingest.url);
    return ingest;
  };
  const stopIngest = async (ingest: RunningApp) => {
    ingestUrls.splice(ingestUrls.indexOf(ingest.url), 1);
    expect(await ingest.stop()).toBe(0);
  };
  const untilMoreApplied = async (more: number) => {
    const target = (await countApplied()) + more;
    await waitFor(async () => (await countApplied()) >= target, patiently);
  };
  const countQueued = async () => {
    const names = ["wait", "active", "delayed", "failed"];
    const sizes = shardNumbers(8).flatMap((shard) =>
      names.map(async (name) => {
        const key = keyOf(shard, `${queueName}:${name}`);
        return (await redis.type(key)) === "zset" ? redis.zcard(key) : redis.llen(key);
      }),
    );
    return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
  };

  const first = await startIngest(1);
  // Its QUEUE_SHARDS is never changed: it learns of other shards from the ingests.
  const worker = await surroundings().start("worker", withShards(1));
  load = startLoad({
    ingestUrls,
    secretOf,
    environment: ofLoad,
    queuePrefix: environment["QUEUE_PREFIX"] ?? "",
    perSecond: 100,
  });
  await untilMoreApplied(100);

  const eight = await startIngest(8);
  await waitFor(() => worker.logLines().some(({ shards }) => shards === "1-7"), patiently);
  await untilMoreApplied(200);
  await stopIngest(first);
  await untilMoreApplied(200);

  const two = await startIngest(2);
  await untilMoreApplied(200);
  await stopIngest(eight);
  await untilMoreApplied(200);

  await load.stop();
  for (const ingest of [first, eight, two])
    expect(ingest.logLines().filter(({ outcome }) => outcome === "queue-unavailable")).toEqual([]);
  await waitFor(async () => expect(await countQueued()).toBe(0), { timeoutMs: 60_000 });
  const { tally, violations } = await load.judge();
  expect(violations).toEqual([]);
  expect(tally).toMatchObject({ attempted: load.posts.length, acknowledged: load.posts.length });
  expect(await ops("bookings", "verify")).toContain(" 0 bookings differ");
  await stopIngest(two);
  expect(await worker.stop("SIGTERM")).toBe(0);
}, 180_000);
