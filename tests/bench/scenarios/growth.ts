import { builtApps } from "@booking-events/harness/app-process";
import { migrate } from "@booking-events/store";
import type { BenchDatabase } from "../data-services.ts";
import { createEnvelope } from "../fill-queue.ts";
import { measureApply } from "../measure-apply.ts";
import { runRounds } from "../rounds.ts";
import { fullBooking } from "../sample-events.ts";
import { type Bench, IntegrityError, type Measurement, type Scenario } from "../scenario.ts";

export const growth: Scenario = {
  name: "growth",
  about: "events applied by one worker process with many bookings in the tables, beside empty tables",
  run: (bench) =>
    bench.services.withDatabase(async (full) => {
      const [bookings, applied] = bench.isSmoke ? [2_000, 1_500] : [2_000_000, 20_000];
      await fillTables(full, bookings);
      let index = bookings;
      const applyTo = (database: BenchDatabase, reference: (index: number) => string) => {
        const events = Array.from({ length: applied }, () => {
          index += 1;
          return createEnvelope(index, { kind: "update", reference: reference(index), payload: fullBooking });
        });
        return measure(bench, database, events);
      };
      const newBooking = (at: number) => `TRIP-${at}`;
      const anyBooking = () => `TRIP-${Math.ceil(Math.random() * bookings)}`;
      const title = `growth, ${bookings.toLocaleString("en")} bookings`;
      const measurements = await runRounds(bench, title, {
        "new bookings, empty tables": () =>
          bench.services.withDatabase(async (empty) => {
            await migrate(empty.url);
            return applyTo(empty, newBooking);
          }),
        "new bookings": () => applyTo(full, newBooking),
        updates: () => applyTo(full, anyBooking),
      });
      const beside = { to: "new bookings, empty tables", atLeast: 0.8 };
      return [{ title, measurements, comparisons: [{ figure: "eventsPerSecond", of: "new bookings", ...beside }] }];
    }),
};

async function measure(
  bench: Bench,
  database: BenchDatabase,
  events: ReturnType<typeof createEnvelope>[],
): Promise<Measurement> {
  const before = await countEvents(database);
  const measurement = await measureApply(bench, builtApps.worker, { database, events });
  const applied = (await countEvents(database)) - before;
  if (applied !== events.length) throw new IntegrityError(`${events.length} events were queued, ${applied} applied.`);
  return measurement;
}

async function countEvents(database: BenchDatabase): Promise<number> {
  const [found] = await database.query<{ count: number }>("select count(*)::int as count from booking_events");
  return found?.count ?? 0;
}

/** As the worker would have filled them: each booking with its one event and its change. */
async function fillTables(database: BenchDatabase, count: number): Promise<void> {
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
      content_sequence, last_sequence, revision, created_at, updated_at)
    select booking_key, 'acme', 'trip', reference, 'active', id, sequence, payload, digest, sequence, sequence, 1, now(), now()
    from source`);
  await database.query(`
    insert into booking_changes (id, partner, reference_kind, reference, revision, change, event_id, sequence)
    select n, 'acme', 'trip', reference, 1, 'created', id, sequence from source`);
  await database.query(`update feed_position set last_id = ${count}`);
  await database.query("drop table source");
  await database.query("set synchronous_commit = on");
  await database.query("vacuum analyze");
  await database.query("checkpoint");
}
