import { useTestDatabase } from "@booking-events/harness/test-database";
import { beforeAll, expect, test } from "vitest";
import type { Queryable } from "../connect/queryable.ts";
import { countPages } from "../testing/count-pages.ts";
import { type EventFilter, listEvents } from "./list-events.ts";

const events = 20_000;
/** Those events fill thousands of pages. An index of each partition needs one or two. */
const fewPages = 60;
const minute = 60_000;

const { pool } = useTestDatabase({ maxConnections: 2 });

/** One event a minute. The first ones, and so the oldest, are of a partner that has been silent since. */
beforeAll(async () => {
  const start = new Date(Date.now() - events * minute);
  await pool.query(
    `insert into booking_events (id, partner, kind, reference_kind, reference, booking_key, sequence, payload,
       content_digest, outcome, received_at, state_after)
     select (left(first_event_id(at)::text, 24) || lpad(n::text, 12, '0'))::uuid,
       case when n <= 3 then 'silent' else 'acme' end, case when n = 2 then 'delete' else 'update' end, 'trip', 'T' || n,
       sha256(n::text::bytea), n, jsonb_build_object('padding', repeat(md5(n::text), 20)), sha256(n::text::bytea),
       case n when 2 then 'deleted' when 4 then 'unchanged' else 'updated' end, at, 'active'
     from generate_series(1, $1) as n, lateral (select $2::timestamptz + n * interval '1 minute' as at)`,
    [events, start],
  );
  await pool.query("analyze booking_events");
});

const rare: [string, Omit<EventFilter, "limit">, string[]][] = [
  ["events of a partner", { partner: "silent" }, ["T3", "T2", "T1"]],
  ["deletes of a partner", { partner: "silent", kind: "delete" }, ["T2"]],
  ["events with an outcome", { outcome: "unchanged" }, ["T4"]],
  ["events of a partner with an outcome", { partner: "acme", outcome: "unchanged" }, ["T4"]],
  ["events with an outcome that nothing had", { outcome: "expired" }, []],
  ["events of an unknown partner", { partner: "other" }, []],
];

test.each(rare)("rare %s are found in a few pages", async (_, filter, found) => {
  const list = (client: Queryable) => listEvents(client, { ...filter, limit: 20 });
  expect((await list(pool)).map(({ reference }) => reference)).toEqual(found);
  expect(await countPages(pool, list)).toBeLessThan(fewPages);
});
