import { execute } from "@booking-events/harness/execute";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { beforeAll, expect, test } from "vitest";
import { countPages } from "../testing/count-pages.ts";
import { readPartnerActivity } from "./partner-activity.ts";

const { pool, url } = useTestDatabase();

const from = new Date("2026-11-20T12:00:00Z");
const hourMs = 3_600_000;
const windows = [-1, 0].map((hour) => ({
  from: new Date(from.getTime() + hour * hourMs),
  until: new Date(from.getTime() + (hour + 1) * hourMs),
}));

/** In an hour, 30,000 events of acme and 30 of globex, of which few have a warning that shows when they are applied. */
beforeAll(async () => {
  await pool.query(
    `insert into booking_events (id, partner, kind, reference_kind, reference, booking_key, content_digest, sequence,
       outcome, payload, warnings, received_at)
     select (lpad(to_hex($1::bigint + n * 100), 12, '0') || '70008000' || lpad(to_hex(n), 12, '0'))::uuid,
       case when n % 1000 = 0 then 'globex' else 'acme' end, 'create', 'trip', 'TRIP-' || n, sha256(n::text::bytea),
       sha256(''), n, case when n % 3 = 0 then 'updated' else 'created' end, '{}',
       case when n % 5000 = 0 then array['similar-name', 'key-reused'] when n % 10 = 0 then array['replaced']
         else array['similar-name'] end,
       to_timestamp(($1::bigint + n * 100) / 1000.0)
     from generate_series(0, 29999) as n`,
    [from.getTime()],
  );
  await pool.query(
    `insert into dead_letters (event_id, partner, error_code, error, attempts, envelope, failed_at, resolved_at)
     select gen_random_uuid(), case when n % 10 = 0 then 'globex' else 'acme' end, '22012', '', 1, '',
       now() - n * interval '1 s', case when n < 100 then now() end
     from generate_series(0, 4999) as n`,
  );
  await execute(url, "vacuum analyze booking_events, dead_letters");
});

test("a partner that sends little is counted, and one that sends much is sampled", async () => {
  const globex = await readPartnerActivity(pool, "globex", windows);
  expect(globex.paces).toMatchObject([
    { events: 0, outcomes: {}, isEstimate: false },
    { events: 30, outcomes: { created: 20, updated: 10 }, isEstimate: false },
  ]);
  const acme = await readPartnerActivity(pool, "acme", windows);
  expect(acme.paces[1]).toMatchObject({ isEstimate: true, outcomes: { created: 334, updated: 166 } });
  expect((await readPartnerActivity(pool, "nobody", windows)).notices).toEqual([]);
});

test("what the sender should know is found among all of its events", async () => {
  const { notices, failed } = await readPartnerActivity(pool, "globex", windows);
  expect(notices).toMatchObject([
    { code: "replaced", count: 24 },
    { code: "key-reused", count: 6, lastEventId: expect.stringMatching(/0000000061a8$/) },
  ]);
  expect(failed).toHaveLength(20);
  expect(failed[0]?.code).toBe("22012");
  expect((await readPartnerActivity(pool, "acme", windows)).notices).toMatchObject([
    { code: "replaced", count: 1_000 },
  ]);
  expect((await readPartnerActivity(pool, "acme", windows.slice(0, 1))).notices).toEqual([]);
});

test("what it costs does not depend on how many events there are", async () => {
  for (const partner of ["acme", "globex", "nobody"])
    expect(await countPages(pool, (client) => readPartnerActivity(client, partner, windows))).toBeLessThan(2_500);
});
