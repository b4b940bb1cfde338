import { setTimeout as sleep } from "node:timers/promises";
import { execute, useTestDatabase } from "@booking-events/harness/test-database";
import { maintain, migrate } from "@booking-events/store";
import { migrateTo } from "@booking-events/store/testing/migrate-to";
import { applyEvents } from "@booking-events/worker/apply/apply-events";
import { expect, test } from "vitest";

const events = Number(process.env["PARTITION_EVENTS"] ?? 5_000_000);
const eventsPerStatement = 100_000;
const eventsPerBatch = 200;
const measuredMs = 10_000;

const { pool, url } = useTestDatabase({ maxConnections: 4 });

/** A log of 14 months, as a release before partitions would have written it. */
async function fillLog(): Promise<void> {
  await migrateTo(7, { pool, url });
  const stepMs = Math.floor((420 * 24 * 60 * 60 * 1_000) / events);
  for (let first = 1; first <= events; first += eventsPerStatement) {
    await pool.query(
      `insert into booking_events (id, partner, kind, reference_kind, reference, booking_key, sequence, payload,
         content_digest, outcome, received_at, processed_at, state_after)
       select (lpad(to_hex(ms), 12, '0') || '7000' || '8' || lpad(to_hex(n), 15, '0'))::uuid, 'acme', 'create', 'trip',
         'OLD-' || n, sha256(n::text::bytea), ms * 1000,
         jsonb_build_object('consumerTripPartnerExternalReference', 'OLD-' || n, 'note', repeat('A note of a guest. ', 10)),
         sha256(n::text::bytea), 'created', to_timestamp(ms / 1000.0), to_timestamp(ms / 1000.0), 'active'
       from (
         select n, (extract(epoch from now()) * 1000)::bigint - (${events} - n)::bigint * ${stepMs} as ms
         from generate_series(${first}, ${Math.min(first + eventsPerStatement - 1, events)}) as n
       ) as source`,
    );
  }
}

/** An index of a partitioned table is valid if each partition has its part. */
async function validIndexes(): Promise<string[]> {
  const { rows } = await pool.query<{ name: string }>(
    "select indexrelid::regclass::text as name from pg_index where indrelid = 'booking_events'::regclass and indisvalid",
  );
  return rows.map(({ name }) => name);
}

/** A UUIDv7 of that time. */
function idAt(time: number, number: number): string {
  const hex = time.toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-9000-${String(number).padStart(12, "0")}`;
}

/** Applies events until it is stopped, and notes when each batch was committed. */
function startWorker() {
  const commits: number[] = [];
  let isRunning = true;
  const apply = async () => {
    for (let batch = 0; isRunning; batch += 1) {
      await applyEvents(
        pool,
        Array.from({ length: eventsPerBatch }, (_, index) => {
          const now = Date.now();
          const payload = { consumerTripPartnerExternalReference: `TRIP-${batch}-${index % 100}`, note: `${index}` };
          return {
            ...{
              version: 1 as const,
              eventId: idAt(now, batch * eventsPerBatch + index),
              kind: "update" as const,
              partner: "acme",
              idempotencyKey: null,
            },
            ...{ sequence: now * 1_000 + index, receivedAt: new Date(now).toISOString(), payload },
          };
        }),
        { duplicateWindowMs: 0 },
      );
      commits.push(performance.now());
    }
  };
  const applied = apply();
  return {
    perSecond: (from: number, to: number) =>
      (commits.filter((at) => at >= from && at < to).length * eventsPerBatch * 1_000) / (to - from),
    longestPauseMs: (from: number, to: number) => {
      const within = [from, ...commits.filter((at) => at >= from && at < to), to];
      return Math.max(...within.slice(1).map((at, index) => at - (within[index] as number)));
    },
    async stop() {
      isRunning = false;
      await applied;
      return commits.length * eventsPerBatch;
    },
  };
}

test(`a log of ${events} events gets partitions while a worker applies others at half its speed or more`, async () => {
  await fillLog();
  // As autovacuum would have. Otherwise, the first reader writes all pages.
  await execute(url, "vacuum analyze booking_events");
  await migrate(url);
  const worker = startWorker();
  // What is measured begins when everything has been compiled and cached.
  await sleep(measuredMs / 2);
  const before = performance.now();
  await sleep(measuredMs);
  const start = performance.now();
  const steps: string[] = [];
  for (let hasMore = true; hasMore; ) {
    const { partitioning, problems, ...done } = await maintain(pool, {
      ...{ retentionDays: 0, deletedRetentionDays: 0, deadLetterRetentionDays: 0 },
    });
    expect(problems).toEqual([]);
    steps.push(...partitioning);
    hasMore = done.hasMore;
  }
  const end = performance.now();
  const applied = await worker.stop();

  const [usual, meanwhile] = [worker.perSecond(before, start), worker.perSecond(start, end)];
  console.log(
    `${Math.round(usual)} events/s before, ${Math.round(meanwhile)} during the ${Math.round(end - start)} ms; ` +
      `longest pause ${Math.round(worker.longestPauseMs(before, start))} and ` +
      `${Math.round(worker.longestPauseMs(start, end))} ms`,
  );
  expect(steps).toEqual(["prepared", "validated", "attached"]);
  expect(await validIndexes()).toEqual(
    expect.arrayContaining(["booking_events_by_outcome", "booking_events_by_partner"]),
  );
  expect((await pool.query("select count(*)::int as count from booking_events")).rows).toEqual([
    { count: events + applied },
  ]);
  expect(meanwhile / usual).toBeGreaterThan(0.5);
}, 1_800_000);
