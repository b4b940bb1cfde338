import { join } from "node:path";
import { builtApps } from "@booking-events/harness/app-process";
import { migrate } from "@booking-events/store";
import { newQueuePrefix } from "../contestant.ts";
import { type BenchDatabase, startDataServices } from "../data-services.ts";
import { createEnvelope, fillQueue } from "../fill-queue.ts";
import { measureAccept } from "../measure-accept.ts";
import { countLeft, measureApply, ourConcurrency } from "../measure-apply.ts";
import { runRounds } from "../rounds.ts";
import { fullBooking } from "../sample-events.ts";
import { type Bench, IntegrityError, type Measurement, type Scenario, type Section } from "../scenario.ts";

const payloadBytes = Buffer.byteLength(JSON.stringify(fullBooking));
const eventsPerFill = 10_000;

export const growth: Scenario = {
  name: "growth",
  about: "accepting and applying with a large backlog and many bookings, and what they take",
  async run(bench) {
    const sizes = bench.isSmoke
      ? { backlog: 5_000, bookings: 2_000, applied: 1_500 }
      : { backlog: 1_000_000, bookings: 2_000_000, applied: 20_000 };
    return [...(await withBacklog(bench, sizes)), ...(await withBookings(bench, sizes))];
  },
};

interface Sizes {
  backlog: number;
  bookings: number;
  /** In each measurement. */
  applied: number;
}

/** A second Redis holds the backlog, so that it can be measured in turn with one that holds none. */
async function withBacklog(bench: Bench, { backlog, applied }: Sizes): Promise<Section[]> {
  const services = await startDataServices(join(bench.dir, "backlog"), bench.signal);
  try {
    const filled = { ...bench, services };
    const queuePrefix = newQueuePrefix();
    const size = await fill(filled, queuePrefix, backlog);
    const waiting = `${backlog.toLocaleString("en")} waiting`;
    const accepting = { program: builtApps.ingest, queues: true, connections: 64, type: "JSON" as const };
    // No less: it would be reached.
    const environment = { MAX_BACKLOG: "1000000000" };
    const acceptTitle = `growth, accepting with ${waiting}`;
    const accepts = await runRounds(bench, acceptTitle, {
      "none waiting": () => measureAccept(bench, accepting),
      [waiting]: () => measureAccept(filled, { ...accepting, queuePrefix, environment }),
    });
    const applyTitle = `growth, applying with ${waiting}`;
    const applies = await runRounds(bench, applyTitle, {
      "none more waiting": () => applyNew(bench, applied),
      [waiting]: () => applySome(filled, queuePrefix, applied),
    });
    return [
      { title: `growth, what a waiting event takes, of ${waiting}`, measurements: { size: [size] }, comparisons: [] },
      toSection(acceptTitle, accepts, { of: waiting, to: "none waiting", atLeast: 0.9 }),
      toSection(applyTitle, applies, { of: waiting, to: "none more waiting", atLeast: 0.9 }),
    ];
  } finally {
    await services.stop();
  }
}

async function withBookings(bench: Bench, sizes: Sizes): Promise<Section[]> {
  const database = await bench.services.createDatabase();
  try {
    return await compareTables(bench, sizes, database);
  } finally {
    await database.drop();
  }
}

async function compareTables(bench: Bench, { bookings, applied }: Sizes, database: BenchDatabase): Promise<Section[]> {
  const size = await fillTables(database, bookings);
  const inTable = `${bookings.toLocaleString("en")} in the table`;
  const title = `growth, applying with ${inTable}`;
  let firstIndex = bookings;
  const nextEvents = () => {
    firstIndex += applied;
    return firstIndex;
  };
  const measurements = await runRounds(bench, title, {
    "new bookings, empty tables": () => applyNew(bench, applied),
    [`new bookings, ${inTable}`]: () => applyTo(bench, database, createEvents(applied, nextEvents())),
    [`updates, ${inTable}`]: () =>
      applyTo(
        bench,
        database,
        createEvents(applied, nextEvents(), () => `TRIP-${Math.ceil(Math.random() * bookings)}`),
      ),
  });
  return [
    { title: `growth, what an applied event takes, of ${inTable}`, measurements: { size: [size] }, comparisons: [] },
    toSection(title, measurements, {
      ...{ of: `new bookings, ${inTable}`, to: "new bookings, empty tables", atLeast: 0.8 },
    }),
  ];
}

function toSection(
  title: string,
  measurements: Record<string, Measurement[]>,
  comparison: { of: string; to: string; atLeast: number },
): Section {
  return { title, measurements, comparisons: [{ figure: "eventsPerSecond", ...comparison }] };
}

async function fill({ services, signal, say }: Bench, queuePrefix: string, count: number): Promise<Measurement> {
  const usedBytes = async () => Number(/used_memory:(\d+)/.exec(await services.redis.info("memory"))?.[1]);
  const before = await usedBytes();
  for (let start = 0; start < count; start += eventsPerFill) {
    signal.throwIfAborted();
    await fillQueue(services.redisUrl, queuePrefix, createEvents(Math.min(eventsPerFill, count - start), start));
    if (start % 200_000 === 0) say(`  ${start.toLocaleString("en")} events are in the queue`);
  }
  const redisBytes = ((await usedBytes()) - before) / count;
  return { redisBytes, timesPayload: redisBytes / payloadBytes };
}

/** As the worker would have filled them: each booking with its one event and its change. */
async function fillTables(database: BenchDatabase, count: number): Promise<Measurement> {
  await migrate(database.url);
  await database.query("set synchronous_commit = off");
  await database.query(`
    create temporary table source as
    select n, 'TRIP-' || n as reference, gen_random_uuid() as id,
      sha256('acme'::bytea || '\\x00'::bytea || convert_to('TRIP-' || n, 'UTF8')) as booking_key,
      ${Date.UTC(2026, 0, 1) * 1_000}::bigint + n as sequence, sha256(n::text::bytea) as digest,
      '${JSON.stringify(fullBooking).replaceAll("'", "''")}'::jsonb || jsonb_build_object('consumerTripVenueName', 'Venue ' || n) as payload
    from generate_series(1, ${count}) as n`);
  await database.query(`
    insert into booking_events (id, partner, kind, reference_kind, reference, booking_key, sequence, idempotency_key, payload,
      content_digest, outcome, received_at)
    select id, 'acme', 'create', 'trip', reference, booking_key, sequence, null, payload, digest, 'created', now() from source`);
  await database.query(`
    insert into bookings (booking_key, partner, reference_kind, reference, state, event_id, sequence, payload, content_digest,
      content_sequence, last_sequence, created_at, updated_at)
    select booking_key, 'acme', 'trip', reference, 'active', id, sequence, payload, digest, sequence, sequence, now(), now()
    from source`);
  await database.query(`
    insert into booking_changes (partner, reference_kind, reference, change, event_id, sequence)
    select 'acme', 'trip', reference, 'created', id, sequence from source`);
  await database.query("drop table source");
  await database.query("set synchronous_commit = on");
  await database.query("vacuum analyze");
  await database.query("checkpoint");
  const [size] = await database.query<{ events: number; bookings: number }>(
    `select (pg_total_relation_size('booking_events') + pg_total_relation_size('booking_changes'))::float8 as events,
       pg_total_relation_size('bookings')::float8 as bookings`,
  );
  if (size === undefined) throw new IntegrityError("PostgreSQL tells no sizes.");
  return { postgresBytes: size.events / count, bookingBytes: size.bookings / count };
}

async function applyNew(bench: Bench, count: number): Promise<Measurement> {
  const database = await bench.services.createDatabase();
  try {
    return await applyTo(bench, database, createEvents(count, 0));
  } finally {
    await database.drop();
  }
}

async function applyTo(
  bench: Bench,
  database: BenchDatabase,
  events: ReturnType<typeof createEvents>,
): Promise<Measurement> {
  const queuePrefix = newQueuePrefix();
  await fillQueue(bench.services.redisUrl, queuePrefix, events);
  const before = await countEvents(database);
  const measurement = await measureOurs(bench, queuePrefix, database, events.length);
  const applied = (await countEvents(database)) - before;
  if (applied !== events.length) throw new IntegrityError(`${events.length} events were queued, ${applied} applied.`);
  return measurement;
}

/** The rest stays in the queue. */
async function applySome(bench: Bench, queuePrefix: string, count: number): Promise<Measurement> {
  const database = await bench.services.createDatabase();
  try {
    const before = await countLeft(bench, queuePrefix);
    const measurement = await measureOurs(bench, queuePrefix, database, count);
    const taken = before - (await countLeft(bench, queuePrefix));
    const applied = await countEvents(database);
    if (applied !== taken) throw new IntegrityError(`${taken} events left the queue, and ${applied} were applied.`);
    return measurement;
  } finally {
    await database.drop();
  }
}

function measureOurs(bench: Bench, queuePrefix: string, database: BenchDatabase, count: number): Promise<Measurement> {
  return measureApply(bench, {
    ...{ program: builtApps.worker, concurrency: ourConcurrency, queuePrefix, database, count },
  });
}

async function countEvents(database: BenchDatabase): Promise<number> {
  const [exists] = await database.query<{ table: string | null }>("select to_regclass('booking_events') as table");
  if (exists?.table == null) return 0;
  const [found] = await database.query<{ count: number }>("select count(*)::int as count from booking_events");
  return found?.count ?? 0;
}

function createEvents(count: number, firstIndex: number, reference = (index: number) => `TRIP-${index}`) {
  return Array.from({ length: count }, (_, offset) => {
    const index = firstIndex + offset;
    return createEnvelope(index, { kind: "update", reference: reference(index), payload: fullBooking });
  });
}
