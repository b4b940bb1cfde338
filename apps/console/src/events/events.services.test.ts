import { useTestDatabase } from "@booking-events/harness/test-database";
import { writeDeadLetter } from "@booking-events/store";
import { expect, test } from "vitest";
import { useConsole } from "../testing/start-console.ts";

const { pool, url } = useTestDatabase();
const withoutRedis = useConsole(() => ({ DATABASE_URL: url, REDIS_URL: "redis://127.0.0.1:1" }));

test("without Redis, an event's page shows what PostgreSQL knows, and says what it has not seen", async () => {
  const eventId = crypto.randomUUID();
  await writeDeadLetter(pool, {
    ...{ eventId, partner: "acme", kind: "create", referenceKind: "trip", reference: "TRIP-1" },
    ...{ sequence: Date.now() * 1_000, errorCode: "22003", error: "It failed.", attempts: 1 },
    envelope: Buffer.from("{}"),
  });
  const browser = await withoutRedis.logIn();
  const known = await browser.get(`/events/${eventId}`);
  expect(known.status).toBe(200);
  expect(known.html).toContain("22003: It failed.");
  expect(known.html).toContain("The queue was not looked at: Redis at 127.0.0.1:1 ");
  const unknown = await browser.get(`/events/${crypto.randomUUID()}`);
  expect(unknown.status).toBe(503);
  expect(unknown.html).toContain("The queue was not looked at");
});
