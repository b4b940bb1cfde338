import { redisUrl, uniquePrefix } from "@booking-events/harness";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { beforeEach, expect, test } from "vitest";
import { useConsole } from "../testing/start-console.ts";
import { textOf } from "../testing/text-of.ts";

const { pool, url } = useTestDatabase();
const desk = useConsole(() => ({ DATABASE_URL: url, REDIS_URL: redisUrl(), QUEUE_PREFIX: uniquePrefix() }));

beforeEach(async () => {
  await pool.query("truncate operator_actions, erasures");
  await pool.query(
    `insert into operator_actions (id, operator, command, arguments, outcome, did, began_at, ended_at)
     select gen_random_uuid(), case when n = 150 then 'Ada' else 'Eve' end, 'partners revoke',
       jsonb_build_object('partner', 'acme', 'secretId', 's' || n), 'done', '{"hasChanged": true}', now() - n * interval '1 minute', now()
     from generate_series(1, 150) as n`,
  );
  await pool.query(
    "insert into erasures (erased_by, reason, search, bookings) values ('Ada', '<b>asked</b>', 'email', 2)",
  );
});

test("it shows who did what, a hundred at a time, until all were shown", async () => {
  const browser = await desk.logIn();
  const first = await browser.get("/audit?by=Eve");
  expect(first.html.match(/partners revoke/g)).toHaveLength(100);
  expect(textOf(first.html)).toContain("partner acme, secretId s1");
  const [, next = ""] = /<a rel="next" href="([^"]+)"/.exec(first.html) ?? [];
  const second = await browser.get(next.replaceAll("&amp;", "&"));
  expect(second.html.match(/partners revoke/g)).toHaveLength(50);
  expect(second.html).not.toContain('rel="next"');
  expect(textOf((await browser.get("/audit?by=Ada")).html)).toContain("secretId s150");
});

test("it shows erasures", async () => {
  expect(textOf((await (await desk.logIn()).get("/audit")).html)).toMatch(/Ada <b>asked<\/b> email 2 0 0 0/);
});

test("a time that is none is refused", async () => {
  expect((await (await desk.logIn()).get("/audit?since=yesterday")).status).toBe(422);
});
