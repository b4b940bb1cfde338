import { waitFor } from "@booking-events/harness";
import {
  BookingEventsError,
  createBookingEventsClient,
  type Difference,
  digestOf,
  type ListedReference,
} from "@booking-events/schema/client";
import { examples } from "@booking-events/schema/testing";
import { expect, test } from "vitest";
import { prepareSurroundings } from "./surroundings.ts";

const secret = "a-secret-of-the-client-tests-0123456789";
const surroundings = prepareSurroundings(secret);

/** The client of the schema package, against the real processes. Its own tests have the faults. */
test("what the client sends can be asked for, and compared by its digest", async () => {
  const { start } = surroundings();
  const [ingest, lookup] = await Promise.all([start("ingest"), start("lookup"), start("worker")]);
  const client = createBookingEventsClient({ baseUrl: ingest.url, lookupUrl: lookup.url, secret });
  const valid = examples.filter((example) => example.kind === "create" && "valid" in example.expect);
  const list: ListedReference[] = [];

  for (const [index, { payload }] of valid.entries()) {
    const reference = `TRIP-${index}`;
    const booking = { ...payload, consumerTripPartnerExternalReference: reference };
    const { eventId } = await client.create(booking);
    await waitFor(async () => expect(await client.receipt(eventId)).toMatchObject({ status: "applied" }));
    const digest = await digestOf(booking);
    expect(await client.booking(reference)).toMatchObject({ state: "active", decidedBy: eventId, digest });
    list.push({ reference, digest });
  }

  expect(valid.length).toBeGreaterThan(5);
  expect(await client.receipt("01a1fafe-d690-7608-9309-bff7f221cbc9")).toBeUndefined();
  expect(await client.booking("TRIP-0", { referenceKind: "consumer" })).toBeUndefined();

  const [first, ...others] = list;
  const differences: Difference[] = [];
  const digest = "0".repeat(64);
  for await (const difference of client.reconcile([
    ...others.slice(1),
    { reference: "TRIP-1", digest },
    { reference: "TRIP-X" },
  ]))
    differences.push(difference);
  expect(differences).toMatchObject([
    { reference: "TRIP-1", result: "different" },
    { reference: "TRIP-X", result: "missing" },
    { reference: first?.reference, result: "unknown" },
  ]);
});

test.each([
  ["a whole list, for its secret", { secret: "not-a-secret", invalidLine: 0 }, { code: "invalid-secret", status: 403 }],
  ["a line in the middle of a long list", { invalidLine: 75_000 }, { code: "invalid-list-line", status: 400 }],
])("a partner learns why the service refuses %s", async (_what, { invalidLine, ...options }, details) => {
  const lookup = await surroundings().start("lookup");
  const client = createBookingEventsClient({ baseUrl: lookup.url, secret, ...options });
  const lines = 100_000;
  function* list() {
    for (let line = 1; line <= lines; line += 1) yield { reference: line === invalidLine ? "" : `NEVER-${line}` };
  }

  const error = await client
    .reconcile(list())
    .next()
    .catch((reason: unknown) => reason);

  expect(error).toBeInstanceOf(BookingEventsError);
  expect(error).toMatchObject({ ...details, retryable: false });
});
