import { useTestDatabase } from "@booking-events/harness/test-database";
import { beforeAll, expect, test } from "vitest";
import type { Queryable } from "../connect/queryable.ts";
import { countPages } from "../testing/count-pages.ts";
import { type EventFilter, searchEvents } from "./list-events.ts";

const events = 30_000;
const limitOfSearch = 20_000;

const { pool } = useTestDatabase({ maxConnections: 2 });

/** One event a minute. The first one is of a partner that has been silent since. */
beforeAll(async () => {
  const start = new Date(Date.now() - events * 60_000);
  await pool.query(
    `insert into booking_events (id, partner, kind, reference_kind, reference, booking_key, sequence, payload,
       content_digest, outcome, received_at, state_after, secret_id)
     select (left(first_event_id(at)::text, 24) || lpad(n::text, 12, '0'))::uuid,
       case when n = 1 then 'silent' else 'acme' end, case when n = 5 then 'delete' else 'update' end, 'trip', 'T' || n,
       sha256(n::text::bytea), n, '{}', sha256(n::text::bytea),
       case n when 7 then 'superseded' else 'updated' end, at, 'active', case n when 9 then 's9' else 's1' end
     from generate_series(1, $1) as n, lateral (select $2::timestamptz + n * interval '1 minute' as at)`,
    [events, start],
  );
  await pool.query("analyze booking_events");
});

async function searchAll(filter: Omit<EventFilter, "limit" | "before">) {
  const found: string[] = [];
  let before: string | undefined;
  let pages = 0;
  do {
    const { events: page, lookedTo } = await searchEvents(pool, { ...filter, before, limit: 2 });
    found.push(...page.map(({ reference }) => reference));
    before = lookedTo ?? undefined;
    pages += 1;
  } while (before !== undefined && pages < 10);
  return { found, pages };
}

test.each<[what: string, filter: Omit<EventFilter, "limit">, found: string[], pages: number]>([
  ["of a silent partner", { partner: "silent" }, ["T1"], 1],
  ["with a rare outcome", { outcome: "superseded" }, ["T7"], 1],
  ["with a rare outcome, of a partner", { outcome: "superseded", partner: "acme" }, ["T7"], 1],
  ["with a rare outcome, of another partner", { outcome: "superseded", partner: "silent" }, [], 1],
  ["of a rare kind, after a page that finds none", { kind: "delete" }, ["T5"], 2],
  ["by a secret that is hardly used", { partner: "acme", secret: "s9" }, ["T9"], 2],
])("events %s are found, and no page looks at too many", async (_what, filter, found, pages) => {
  expect(await searchAll(filter)).toEqual({ found, pages });
  const read = (client: Queryable) => searchEvents(client, { ...filter, limit: 2 });
  // One that looks at 20,000 events reads them, and their entries in the index.
  expect(await countPages(pool, read)).toBeLessThan(limitOfSearch / 15);
});

test("a page begins after the one before, and the last one says that it is", async () => {
  const first = await searchEvents(pool, { limit: 3 });
  expect(first.events.map(({ reference }) => reference)).toEqual(["T30000", "T29999", "T29998"]);
  expect(first.lookedTo).toBe(first.events[2]?.id);
  const second = await searchEvents(pool, { limit: 3, before: first.lookedTo ?? "" });
  expect(second.events.map(({ reference }) => reference)).toEqual(["T29997", "T29996", "T29995"]);
  const oldest = await searchEvents(pool, { limit: 3, outcome: "superseded" });
  expect(oldest).toMatchObject({ events: [{ reference: "T7" }], lookedTo: null });
});

test("a period is found", async () => {
  const [newest] = (await searchEvents(pool, { limit: 1 })).events;
  const at = newest?.receivedAt ?? new Date(0);
  const since = new Date(at.getTime() - 5 * 60_000);
  const until = new Date(at.getTime() - 3 * 60_000);
  const { events: found, lookedTo } = await searchEvents(pool, { limit: 10, since, until });
  expect([found.map(({ reference }) => reference), lookedTo]).toEqual([["T29996", "T29995"], null]);
});
