import { setTimeout as sleep } from "node:timers/promises";
import { waitFor } from "@booking-events/harness";
import { useTestDatabase } from "@booking-events/harness/test-database";
import pg from "pg";
import { afterAll, describe, expect, test } from "vitest";
import { startCuttableProxy } from "../testing/cuttable-proxy.ts";
import { FeedOfBookings } from "../testing/feed-of-bookings.ts";
import { Deliverer } from "./deliverer.ts";
import type { Delivery, DeliveryContext } from "./delivery.ts";
import type { DeliveryEvent } from "./delivery-event.ts";

const { pool, url } = useTestDatabase({ maxConnections: 8 });
const feed = new FeedOfBookings(pool);

/** Every night tries more: see `vitest.nightly.ts`. */
const seeds = Array.from({ length: Number(process.env["FEED_SEEDS"] ?? 2) }, (_, index) => index + 1);
const stepsPerSeed = 60;
const references = ["A", "B", "C", "D", "E", "F"];
const names = ["latest", "every", "effects"] as const;
type Name = (typeof names)[number];

/** Ticks with everything that the oracle compares. */
let tick = 0;
/** By the port of a process' proxy: when the read began whose answer came last. */
const lastRead = new Map<number, number>();
const originalQuery = pg.Client.prototype.query;

// The oracle needs to know when an attempt began, which is when what it hands over was read.
pg.Client.prototype.query = function (this: pg.Client, ...args: unknown[]) {
  const answered = originalQuery.apply(this, args as Parameters<typeof originalQuery>) as unknown as Promise<unknown>;
  const [statement] = args as [string | pg.QueryConfig];
  const text = typeof statement === "string" ? statement : statement.text;
  if (text.includes("as wanted (reader")) {
    tick += 1;
    const began = tick;
    answered.then(
      () => lastRead.set(this.port, began),
      () => {},
    );
  }
  return answered;
} as unknown as typeof originalQuery;

afterAll(() => {
  pg.Client.prototype.query = originalQuery;
});

interface Handed {
  process: number;
  /** How often the process had got the lease: what it has done before it lost one may come again. */
  lease: number;
  name: Name;
  delivery: Delivery;
  /** When its attempt began. */
  began: number;
  isDone: boolean;
}

/** What the consumers and the test remember. It shares no code with what it judges. */
class World {
  readonly handed: Handed[] = [];
  readonly changes: { id: number; reference: string; kind: string; note: unknown }[] = [];
  readonly erasedAt = new Map<string, number>();
  readonly failing = new Set<string>();
  isDown = false;
}

/** A process that dies without a word: its connections are cut, and what it remembers is forgotten. */
class TestProcess {
  readonly number: number;
  readonly #controller = new AbortController();
  readonly #cut: () => void;
  readonly #ended: Promise<void>;
  readonly #leases = new Map<string, number>();
  isDead = false;

  static async start(number: number, world: World): Promise<TestProcess> {
    const proxy = await startCuttableProxy(url);
    return new TestProcess(number, world, proxy);
  }

  private constructor(number: number, world: World, proxy: Awaited<ReturnType<typeof startCuttableProxy>>) {
    this.number = number;
    this.#cut = proxy.cut;
    const quiet = { info: () => {}, warn: () => {} };
    const observe = ({ type, name: lessee }: DeliveryEvent) => {
      if (type === "active") this.#leases.set(lessee, (this.#leases.get(lessee) ?? 0) + 1);
    };
    const deliverer = new Deliverer({ database: proxy.url, pollIntervalMs: 100, logger: quiet, observe });
    for (const name of names) {
      deliverer.add({
        ...{ name, mode: name === "latest" ? "latest" : "every", concurrency: 3, timeoutMs: 2_000 },
        retry: { firstPauseMs: 10, longestPauseMs: 50, giveUpAfterMs: 1e9 },
        handle: (delivery, context) => this.#handle(world, { name, delivery, context, port: proxy.port }),
        onStopped: (error) => {
          throw error;
        },
      });
    }
    this.#ended = deliverer.run(this.#controller.signal);
  }

  async #handle(
    world: World,
    { name, delivery, context, port }: { name: Name; delivery: Delivery; context: DeliveryContext; port: number },
  ): Promise<void> {
    if (this.isDead) return new Promise(() => {});
    const [lease, began] = [this.#leases.get(name) ?? 0, lastRead.get(port) ?? 0];
    const one = { process: this.number, lease, name, delivery, began, isDone: false };
    world.handed.push(one);
    const isFailing = world.isDown || world.failing.has(feed.referenceOf(delivery.change.bookingId));
    if (name === "effects")
      await context.client.query("insert into effects (change_id) values ($1)", [delivery.change.id]);
    if (Math.random() < 0.3) await sleep(Math.random() * 20);
    if (this.isDead) return new Promise(() => {});
    if (isFailing) throw new Error("no");
    one.isDone = true;
  }

  /** @returns when nothing of it is left */
  async kill(): Promise<void> {
    this.isDead = true;
    this.#cut();
    this.#controller.abort();
    // As if the time of its leases had passed.
    await pool.query("update feed_readers set active_id = null");
    await this.#ended;
  }

  stop(): Promise<void> {
    this.#controller.abort();
    return this.#ended;
  }
}

/** Mulberry32: the same numbers for the same seed. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const dying: Promise<void>[] = [];
afterAll(() => Promise.allSettled(dying), 60_000);

async function step(world: World, random: () => number, process: TestProcess): Promise<TestProcess> {
  const reference = references[Math.floor(random() * references.length)] ?? "A";
  const kind = random();
  if (kind < 0.6 && !world.erasedAt.has(reference)) {
    const isDeleted = random() < 0.15 && world.changes.some((change) => change.reference === reference);
    const note = world.changes.length;
    const wasDeleted = world.changes.findLast((change) => change.reference === reference)?.kind === "deleted";
    if (isDeleted && wasDeleted) return process;
    const id = isDeleted
      ? await feed.delete(reference)
      : await feed.save(reference, { note }, { ageMs: random() < 0.3 ? 60_000 : 0 });
    world.changes.push({ id, reference, kind: isDeleted ? "deleted" : "saved", note: isDeleted ? undefined : note });
  } else if (
    kind < 0.65 &&
    !world.erasedAt.has(reference) &&
    world.changes.some((change) => change.reference === reference)
  ) {
    const id = await feed.erase(reference);
    tick += 1;
    world.erasedAt.set(reference, tick);
    world.changes.push({ id, reference, kind: "erased", note: undefined });
  } else if (kind < 0.75) {
    if (!world.failing.delete(reference)) world.failing.add(reference);
  } else if (kind < 0.78) world.isDown = !world.isDown;
  else if (kind < 0.83) {
    dying.push(process.kill());
    return TestProcess.start(process.number + 1, world);
  } else await sleep(random() * 60);
  return process;
}

async function settled(lastId: number): Promise<void> {
  await waitFor(
    async () => {
      const { rows } = await pool.query("select last_id from feed_readers order by name");
      expect(rows).toEqual(names.map(() => ({ last_id: lastId })));
      expect((await pool.query("select from feed_deliveries where change_id is not null")).rowCount).toBe(0);
    },
    { timeoutMs: 60_000 },
  );
}

function judgeBooking(world: World, name: Name, reference: string): void {
  const changes = world.changes.filter((change) => change.reference === reference);
  const handed = world.handed.filter(
    (one) => one.name === name && feed.referenceOf(one.delivery.change.bookingId) === reference,
  );
  const done = handed.filter(({ isDone }) => isDone).map(({ delivery }) => delivery.change.id);
  const last = changes.at(-1);
  if (last === undefined) return;
  const told = handed.map(
    ({ process, delivery, isDone }) => `${process}:${delivery.change.id}${isDone ? "" : " failed"}`,
  );
  expect(done.at(-1), `${name} was handed of ${reference}: ${told.join(", ")}`).toBe(last.id);
  const isErased = world.erasedAt.has(reference);
  if (name !== "latest" && !isErased) expect(new Set(done)).toEqual(new Set(changes.map(({ id }) => id)));
  for (const ofLease of Map.groupBy(handed, ({ process, lease }) => `${process}.${lease}`).values()) {
    const ids = ofLease.map(({ delivery }) => delivery.change.id);
    expect(ids).toEqual(ids.toSorted((one, other) => one - other));
    // What the handler has done in a transaction that could not be committed comes again.
    if (name === "effects") continue;
    const keys = ofLease.filter(({ isDone }) => isDone).map(({ delivery }) => delivery.key);
    expect(keys, `${name} was handed of ${reference}: ${told.join(", ")}`).toEqual([...new Set(keys)]);
  }
  const erasedAt = world.erasedAt.get(reference) ?? Number.POSITIVE_INFINITY;
  for (const { began, delivery } of handed) {
    const { change } = delivery;
    const known = changes.find(({ id }) => id === change.id);
    if (change.payload !== null) expect(change.payload["note"]).toBe(known?.note);
    if (began > erasedAt) expect([change.change, change.reference, change.payload]).toEqual(["erased", null, null]);
  }
}

async function run(seed: number): Promise<void> {
  const random = randomOf(seed);
  const world = new World();
  await feed.clear();
  await pool.query("drop table if exists effects");
  await pool.query("create table effects (change_id bigint)");
  let process = await TestProcess.start(1, world);
  for (let count = 0; count < stepsPerSeed; count += 1) process = await step(world, random, process);
  world.failing.clear();
  world.isDown = false;
  await settled(world.changes.length);
  await process.stop();
  for (const name of names) for (const reference of references) judgeBooking(world, name, reference);
  const { rows } = await pool.query("select change_id from effects group by change_id having count(*) > 1");
  expect(rows).toEqual([]);
  const { rows: effects } = await pool.query<{ change_id: number }>("select change_id from effects");
  const wanted = world.changes.filter(({ reference, kind }) => kind === "erased" || !world.erasedAt.has(reference));
  expect(effects.map(({ change_id }) => change_id)).toEqual(expect.arrayContaining(wanted.map(({ id }) => id)));
}

describe("whatever happens, with consumers that fail and processes that die", () => {
  test.each(seeds)(
    "each booking comes complete and in order, its transaction counts once, and no erased guest is handed over (seed %i)",
    (seed) => run(seed),
    120_000,
  );
});
