import { exchange } from "@booking-events/harness/http-client";
import { acmeSecret } from "@booking-events/harness/partners";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { RecordWarnings } from "./observe/record-warnings.ts";
import { startIngest, type TestIngest } from "./testing/start-ingest.ts";

let ingest: TestIngest;
const recorded: Parameters<RecordWarnings>[] = [];

beforeAll(async () => {
  ingest = await startIngest({ recordWarnings: (...call) => void recorded.push(call) });
});
afterAll(() => ingest.close());

async function post(fields: object, { kind = "create", headers = {} } = {}) {
  const body = JSON.stringify({ consumerTripPartnerExternalReference: "T-1", ...fields });
  const { body: answer } = await exchange(ingest.port, { path: `/booking-event/${kind}/${acmeSecret}`, headers, body });
  return JSON.parse(answer);
}

test("an event carries the codes of its warnings, each once, and they are recorded with its id", async () => {
  const { eventId, warnings } = await post({ consumerPhone: "12", agentPhoneNumber: "12", consumer_given_name: "Ada" });
  expect(warnings).toHaveLength(3);
  const [event] = await ingest.queuedEvents();
  expect(event).toMatchObject({ eventId, warnings: ["unreadable-phone", "similar-name"] });
  expect(recorded.at(-1)).toMatchObject(["acme", eventId, warnings]);
});

test("a dry run's warnings are recorded without an id", async () => {
  const { warnings } = await post({ consumerPhone: "12" }, { headers: { "X-Dry-Run": "true" } });
  expect(recorded.at(-1)).toMatchObject(["acme", null, warnings]);
});

test("an event without a warning carries nothing", async () => {
  const { eventId } = await post({});
  const event = (await ingest.queuedEvents()).find((queued) => queued.eventId === eventId);
  expect(event).not.toHaveProperty("warnings");
});

test("a partner whose dates are all at 22:00 UTC hears that they may be a day early, except in deletes", async () => {
  const send = (number: number, kind?: string) =>
    post(
      {
        consumerTripPartnerExternalReference: `T-${number}`,
        consumerTripArrivalDate: `2027-06-${10 + number}T22:00:00.000Z`,
      },
      kind === undefined ? {} : { kind },
    );
  for (let number = 0; number < 19; number += 1) expect(await send(number)).not.toHaveProperty("warnings");
  expect(await send(19, "delete")).not.toHaveProperty("warnings");
  expect(await send(19)).toMatchObject({
    warnings: [{ code: "perhaps-the-day-before", propertyPath: ["consumerTripArrivalDate"] }],
  });
});
