import { redisUrl, uniquePrefix } from "@booking-events/harness";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { bookingKey, insertEvents, writeDeadLetter } from "@booking-events/store";
import { beforeAll, expect, test } from "vitest";
import { useConsole } from "../testing/start-console.ts";
import { textOf } from "../testing/text-of.ts";

const { pool, url } = useTestDatabase();
const desk = useConsole(() => ({ DATABASE_URL: url, REDIS_URL: redisUrl(), QUEUE_PREFIX: uniquePrefix() }));

const eventId = "0199a000-0000-7000-8000-000000000001";
const deadId = "0199a000-0000-7000-8000-000000000002";
const hostile = '"><script>alert(1)</script>';

beforeAll(async () => {
  const event = { partner: "acme", kind: "create", referenceKind: "trip", sequence: 1 } as const;
  await insertEvents(pool, [
    {
      ...{ ...event, id: eventId, reference: hostile, bookingKey: bookingKey("acme", "trip", hostile) },
      ...{ contentDigest: "00".repeat(32), payload: "{}", warnings: [], idempotencyKey: null, duplicateOf: null },
      ...{ after: null, receivedAt: new Date(), outcome: "created" },
    },
  ]);
  await writeDeadLetter(pool, {
    ...{
      ...event,
      eventId: deadId,
      reference: hostile,
      errorCode: "TypeError",
      error: "The worker failed.",
      attempts: 15,
    },
    envelope: Buffer.from("{}"),
  });
});

test("an event's id leads to its booking", async () => {
  const browser = await desk.logIn();
  for (const [id, what] of [
    [eventId, "event event id acme"],
    [deadId, "dead letter event id acme"],
  ]) {
    const { html } = await browser.get(`/search?q=${id}`);
    expect(textOf(html)).toContain(what);
    expect(html).toContain(`href="/bookings/acme/${encodeURIComponent(hostile)}?`);
    expect(html).not.toContain("<script>alert");
  }
});

test("what is asked stands in the box again, and in no title", async () => {
  const { html } = await (await desk.logIn()).get("/search?q=ada%40example.com");
  expect(html).toContain('value="ada@example.com"');
  expect(html).toContain("<title>Search · Booking events</title>");
  expect(textOf(html)).toContain("Nothing was found for ada@example.com");
  // The workers that start later may have another key than this process.
  expect((await pool.query("select from digest_key where fingerprint is not null")).rowCount).toBe(0);
});

test("nothing asked, nothing looked for", async () => {
  expect(textOf((await (await desk.logIn()).get("/search?q=%20")).html)).toContain("Enter a booking's reference");
});
