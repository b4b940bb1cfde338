import { acmeSecret } from "@booking-events/harness/partners";
import { createBookingEventsClient } from "@booking-events/schema/client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startIngest, type TestIngest } from "./testing/start-ingest.ts";

/** The client of the schema package, against the real service. Its own tests have the faults. */
let ingest: TestIngest;
const booking = { consumerTripPartnerExternalReference: "TRIP-1", consumerGivenName: "Zoë 😀" };

beforeAll(async () => {
  ingest = await startIngest();
});
afterAll(() => ingest.close());

function connect(secret = acmeSecret) {
  return createBookingEventsClient({ baseUrl: `http://127.0.0.1:${ingest.port}`, secret });
}

test("what the client sends is queued with its kind, key and payload", async () => {
  const client = connect();

  const created = await client.create(booking, { idempotencyKey: "TRIP-1/version-1" });
  await client.update(booking);
  await client.delete({ consumerTripPartnerExternalReference: "TRIP-1" });
  const dryRun = await client.update(booking, { dryRun: true });

  expect(dryRun).toEqual({ success: true, dryRun: true });
  expect(await ingest.queuedEvents()).toMatchObject([
    { kind: "create", partner: "acme", idempotencyKey: "TRIP-1/version-1", payload: booking, eventId: created.eventId },
    { kind: "update", idempotencyKey: expect.any(String), payload: booking },
    { kind: "delete", payload: { consumerTripPartnerExternalReference: "TRIP-1" } },
  ]);
});

test("what the service refuses is an error with its code and violations", async () => {
  await expect(connect("wrong-secret").create(booking)).rejects.toMatchObject({ code: "invalid-secret", status: 403 });
  await expect(connect().create({})).rejects.toMatchObject({
    code: "invalid-data",
    requestId: expect.stringMatching(/^[\w-]{36}$/),
    violationList: [{ propertyPath: ["consumerTripPartnerExternalReference"] }],
  });
});
