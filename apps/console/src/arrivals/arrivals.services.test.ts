import { redisUrl, uniquePrefix } from "@booking-events/harness";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { writeDeadLetter } from "@booking-events/store";
import { beforeEach, expect, test } from "vitest";
import { useConsole } from "../testing/start-console.ts";

const { pool, url } = useTestDatabase();
const desk = useConsole(() => ({ DATABASE_URL: url, REDIS_URL: redisUrl(), QUEUE_PREFIX: uniquePrefix() }));
const withoutRedis = useConsole(() => ({ DATABASE_URL: url, REDIS_URL: "redis://127.0.0.1:1" }));

beforeEach(() => pool.query("truncate dead_letters"));

async function letDie(reference: string, daysUntilArrival: number): Promise<void> {
  await writeDeadLetter(pool, {
    ...{ eventId: crypto.randomUUID(), partner: "acme", kind: "create", referenceKind: "trip", reference },
    ...{ sequence: Date.now() * 1_000, errorCode: "22003", error: "It failed.", attempts: 1 },
    arrivalDay: new Date(Date.now() + daysUntilArrival * 86_400_000).toISOString().slice(0, 10),
    envelope: Buffer.from('{"payload":{"consumerGivenName":"Canary"}}'),
  });
}

const hostile = `<script>alert(1)</script>"'\u202e`;

test("a guest whom nobody knows comes first, and the overview counts them", async () => {
  await letDie(hostile, 1);
  await letDie("LATER", 6);
  const browser = await desk.logIn();
  const { status, html } = await browser.get("/arrivals");
  expect(status).toBe(200);
  expect(html).toContain("&lt;script>alert(1)");
  expect(html).not.toContain("<script>alert");
  expect(html).not.toContain("\u202e");
  expect(html).toContain(`href="/bookings/acme/${encodeURIComponent(hostile)}`);
  expect(html).toContain("create dead: 22003");
  expect(html).not.toMatch(/LATER|Canary/);
  expect((await browser.get("/arrivals?within=7d")).html).toContain("LATER");
  expect((await browser.get("/arrivals?within=9y&partner=acme")).html).not.toContain("LATER");
  const overview = (await browser.get("/")).html;
  expect(overview).toMatch(/<a href="\/arrivals">Guests unresolved<\/a><\/dt><dd class="tone-bad">1<\/dd>/);
});

test("without Redis, it says that it has not looked at the queue", async () => {
  await letDie("TRIP-1", 1);
  const { status, html } = await (await withoutRedis.logIn()).get("/arrivals");
  expect(status).toBe(200);
  expect(html).toContain("The queue was not looked at");
  expect(html).toContain("TRIP-1");
});
