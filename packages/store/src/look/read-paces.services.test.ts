import { execute } from "@booking-events/harness/execute";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { beforeAll, expect, test } from "vitest";
import { countPages } from "../testing/count-pages.ts";
import { readPaces } from "./read-paces.ts";

const { pool, url } = useTestDatabase();

const minuteMs = 60_000;
const from = new Date("2026-11-20T12:00:00Z");
const until = new Date(from.getTime() + 10 * minuteMs);
const before = { from: new Date(from.getTime() - 10 * minuteMs), until: from };
const window = { from, until };

/** Twenty thousand events in ten minutes, every tenth of them of globex, and every fourth with a warning. */
beforeAll(async () => {
  await pool.query(
    `insert into booking_events (id, partner, kind, reference_kind, reference, booking_key, content_digest, sequence,
       outcome, payload, warnings, received_at)
     select (lpad(to_hex($1::bigint + n * 30), 12, '0') || '70008000' || lpad(to_hex(n), 12, '0'))::uuid,
       case when n % 10 = 0 then 'globex' else 'acme' end, 'create', 'trip', 'TRIP-' || n, sha256(n::text::bytea),
       sha256(''), n, 'created', '{}', case when n % 4 = 0 then array['similar-name'] else '{}' end,
       to_timestamp(($1::bigint + n * 30) / 1000.0)
     from generate_series(0, 19999) as n`,
    [from.getTime()],
  );
  await execute(url, "vacuum analyze booking_events");
});

const nothing = { events: 0, warnedShare: 0, outcomes: {}, isEstimate: false };

test("many events are estimated by the first of them, and few are counted", async () => {
  const [all, none] = await readPaces(pool, [window, before], { looked: 100 });
  expect(all?.events).toBeGreaterThan(19_000);
  expect(all?.events).toBeLessThan(21_000);
  expect(all).toMatchObject({ warnedShare: 0.25, outcomes: { created: 100 }, isEstimate: true });
  expect(none).toEqual(nothing);
  const short = { from, until: new Date(from.getTime() + 300) };
  expect(await readPaces(pool, [short], { looked: 100 })).toEqual([
    { events: 10, warnedShare: 0.3, outcomes: { created: 10 }, isEstimate: false },
  ]);
});

test("each window may be a partner's", async () => {
  const options = { partners: ["globex", "acme", "nobody"], looked: 100 };
  const [globex, acme, nobody] = await readPaces(pool, [window, window, window], options);
  expect(globex?.events).toBeGreaterThan(1_900);
  expect(globex?.events).toBeLessThan(2_100);
  expect(acme?.events).toBeGreaterThan(17_000);
  expect(acme?.events).toBeLessThan(19_000);
  expect(nobody).toEqual(nothing);
});

test("what it costs does not depend on how many events there are", async () => {
  const windows = [window, before, window];
  const partners = ["acme", "globex", "nobody"];
  for (const options of [{ looked: 10 }, { looked: 10, partners }])
    expect(await countPages(pool, (client) => readPaces(client, windows, options))).toBeLessThan(60);
});
