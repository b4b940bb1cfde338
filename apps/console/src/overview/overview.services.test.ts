import { redisUrl, uniquePrefix, waitFor } from "@booking-events/harness";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { bookingKey, insertEvents } from "@booking-events/store";
import { afterAll, expect, test } from "vitest";
import { useConsole } from "../testing/start-console.ts";

const { pool, url } = useTestDatabase();
const desk = useConsole(() => ({
  ...{ DATABASE_URL: url, REDIS_URL: redisUrl(), QUEUE_PREFIX: uniquePrefix() },
  RUNBOOK_URL: "https://runbook.example/runbook.html",
}));
const withoutServices = useConsole(() => ({
  ...{ DATABASE_URL: "postgres://127.0.0.1:1/none", REDIS_URL: "redis://127.0.0.1:1" },
}));

const listening = new AbortController();
afterAll(() => listening.abort());

/** An id of an event that was received then. */
function idAt(time: Date, number: number): string {
  const hex = time.getTime().toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-${String(number).padStart(12, "0")}`;
}

async function insert(partner: string, receivedAt: Date, number: number, warnings: string[] = []) {
  await insertEvents(pool, [
    {
      ...{ id: idAt(receivedAt, number), partner, kind: "create", reference: `TRIP-${number}`, sequence: number },
      ...{ bookingKey: bookingKey(partner, "trip", `TRIP-${number}`), referenceKind: "trip", outcome: "created" },
      ...{ contentDigest: "00".repeat(32), payload: "{}", warnings, idempotencyKey: null, duplicateOf: null },
      ...{ after: null, receivedAt },
    },
  ]);
}

test("it compares each partner with a week before, and says what needs attention and where to read of it", async () => {
  const now = Date.now();
  for (let number = 0; number < 30; number += 1)
    await insert("acme", new Date(now - 60_000 - number * 1_000), number, number < 15 ? ["similar-name"] : []);
  for (let number = 30; number < 45; number += 1)
    await insert("acme", new Date(now - 7 * 86_400_000 - 60_000 - number * 1_000), number);
  const { status, html } = await (await desk.logIn()).get("/");
  expect(status).toBe(200);
  const row = /<a href="\/partners\/acme">acme<\/a><\/th>(.*?)<\/tr>/.exec(html)?.[1]?.replaceAll(/<[^>]+>/g, "|");
  expect(row?.split(/\|+/).filter(Boolean).slice(0, 5)).toEqual(["2", "1", "50 %", "0 %", "1 min. ago"]);
  expect(html).toContain("No worker takes events. Start one, or look at its log.");
  expect(html).toContain('<a href="https://runbook.example/runbook.html#allworkersgone">Runbook: AllWorkersGone</a>');
});

test("it is there when Redis and PostgreSQL are not, and says so", async () => {
  const { status, html } = await (await withoutServices.logIn()).get("/");
  expect(status).toBe(200);
  expect(html).toContain("Redis at 127.0.0.1:1 does not answer");
  expect(html).toContain("PostgreSQL at 127.0.0.1:1 can't be reached");
});

test("whoever looks gets it again and again", async () => {
  const browser = await desk.logIn();
  const answer = await browser.open("/live/overview", listening.signal);
  expect(answer.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
  let heard = "";
  const reading = (async () => {
    for await (const chunk of answer.body ?? []) heard += Buffer.from(chunk).toString();
  })().catch(() => {});
  await waitFor(() => heard.includes('data: <section aria-labelledby="attention">'), { timeoutMs: 25_000 });
  listening.abort();
  await reading;
});

test("a stranger hears nothing", async () => {
  expect((await desk.visit().get("/live/overview")).location).toBe("/login?next=%2Flive%2Foverview");
});
