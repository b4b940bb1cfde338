import { randomBytes } from "node:crypto";
import { redisUrl, uniquePrefix } from "@booking-events/harness";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { insertSubscription } from "@booking-events/store";
import { beforeEach, expect, test } from "vitest";
import { useConsole } from "../testing/start-console.ts";
import { textOf } from "../testing/text-of.ts";

const { pool, url } = useTestDatabase();
const desk = useConsole(() => ({ DATABASE_URL: url, REDIS_URL: redisUrl(), QUEUE_PREFIX: uniquePrefix() }));

const key = `whsec_${randomBytes(32).toString("base64")}`;

beforeEach(async () => {
  await pool.query("truncate subscriptions, feed_readers, booking_changes, operator_actions cascade");
  await pool.query("update feed_position set last_id = 9, kept_from = 1");
  await insertSubscription(pool, {
    ...{ name: "arrivals", url: "https://ada:word@example.com/hook?key=theirs", mode: "latest", payload: "thin" },
    ...{ signature: "hmac", signingKey: key, tokenSha256: null, createdBy: "Ada" },
    ...{ partners: ["acme"], changes: null, countries: null, arrivalFromDays: null, arrivalToDays: null },
  });
  await pool.query("insert into feed_readers (name, last_id) values ('arrivals', 9), ('program', 3)");
  await pool.query(
    `insert into feed_deliveries (reader, booking_id, change_id, attempts, first_failed_at, retry_at, died_at, failure) values
     ('arrivals', gen_random_uuid(), 4, 3, now(), now() + interval '5 minutes', null, 'http-500'),
     ('arrivals', gen_random_uuid(), 5, 15, now(), null, now(), '<i>'),
     ('arrivals', gen_random_uuid(), 6, 15, now(), null, now(), 'http-410'),
     ('program', gen_random_uuid(), 2, 15, now(), null, now(), 'TypeError')`,
  );
});

const actions = async () =>
  (await pool.query("select operator, command, arguments, outcome, did from operator_actions order by began_at")).rows;
const dead = async () => {
  const { rows } = await pool.query(
    "select change_id::int as id from feed_deliveries where died_at is not null order by 1",
  );
  return rows.map(({ id }) => id);
};

test("the list has subscriptions and other readers, how far they are, and nothing secret", async () => {
  const { html } = await (await desk.logIn()).get("/subscriptions");
  expect(textOf(html)).toMatch(/arrivals https:\/\/example\.com\/hook up to date – 1 2/);
  expect(html).toContain('href="/subscriptions/program"');
  for (const secret of [key.slice(6), "theirs", "word"]) expect(html).not.toContain(secret);
});

test("a subscription's page shows what is parked and dead, and why", async () => {
  const { html } = await (await desk.logIn()).get("/subscriptions/arrivals");
  const text = textOf(html);
  expect(text).toContain("thin, latest, signed by hmac");
  expect(text).toContain("partners acme");
  expect(text).toMatch(/4 [0-9a-f-]{36} no longer in the feed 3 http-500 .* in \d min/);
  expect(text).toMatch(/5 [0-9a-f-]{36} no longer in the feed 15 <i> /);
  for (const secret of [key.slice(6), "theirs", "word"]) expect(html).not.toContain(secret);
});

test("what is done is done by whoever is logged in, and recorded", async () => {
  const browser = await desk.logIn("Ada");
  const at = "/subscriptions/arrivals";
  const submit = async (path: string, form: Record<string, string> = {}) =>
    textOf((await browser.submit(path, form)).html);
  expect(await submit(`${at}/pause`, { reason: "They move <b>" })).toMatch(/arrivals is paused\. .*They move <b>/);
  expect(await submit(`${at}/resume`)).toContain("arrivals is delivered to again.");
  expect(await submit(`${at}/dead-letters/discard`, { change: "5" })).toContain("Counted as delivered: 1 dead letter.");
  expect(await dead()).toEqual([2, 6]);
  expect(await submit(`${at}/dead-letters/replay`)).toContain("Tried again: 1 dead letter.");
  expect(await submit("/subscriptions/program/dead-letters/replay", { change: "2" })).toContain("Tried again: 1");
  expect(await dead()).toEqual([]);
  expect(await submit(`${at}/replay`, { since: "2h" })).toMatch(/Posted again: \d changes\./);
  expect((await actions()).map(({ operator, command, outcome }) => [operator, command, outcome])).toEqual(
    [
      "subscriptions pause",
      "subscriptions resume",
      "subscriptions dead-letters --discard",
      "subscriptions dead-letters --replay",
      "feed dead-letters --replay",
      "subscriptions replay",
    ].map((command) => ["Ada", command, "done"]),
  );
});

test.each([
  ["/pause", {}],
  ["/resume", {}],
  ["/replay", { since: "2h" }],
  ["/dead-letters/replay", {}],
  ["/dead-letters/discard", { change: "5" }],
])("a viewer may not post %s", async (path, form) => {
  const browser = desk.visitAs({ name: "Eve", roles: ["viewer", "privacy"] });
  expect((await browser.post(`/subscriptions/arrivals${path}`, form)).status).toBe(403);
  expect(await actions()).toEqual([]);
  expect((await browser.get("/subscriptions/arrivals")).html).not.toContain('action="/subscriptions');
});

test.each([
  ["/replay", { since: "some day" }, "Not a time"],
  ["/dead-letters/discard", { change: "5 or 6" }, "Not a change"],
])("%s with %j does nothing", async (path, form, title) => {
  const { status, html } = await (await desk.logIn()).post(`/subscriptions/arrivals${path}`, form);
  expect([status, textOf(html)]).toEqual([422, expect.stringContaining(title)]);
  expect(await actions()).toEqual([]);
});

test("what does not exist has no page", async () => {
  expect((await (await desk.logIn()).get("/subscriptions/none")).status).toBe(404);
});
