import { expect, test } from "vitest";
import { type BookingPayload, type EventKind, eventKinds, findWarnings } from "../index.ts";

const trip = "consumerTripPartnerExternalReference";
const consumer = "consumerPartnerExternalReference";

const codesOf = (kind: EventKind, payload: BookingPayload) =>
  findWarnings(kind, payload).map(({ code, field, propertyPath }) => [code, field, ...propertyPath]);

test.each(eventKinds)("%s: a clean trip reference gets no warning", (kind) => {
  expect(codesOf(kind, { [trip]: "booking-2001", [consumer]: " customer-1001 " })).toEqual([]);
});

test.each(["S-9\r\n", "S\u200b-9", "S\u00a09", "u\u0308", "\ufeffS-9"])(
  "%j gets a warning, in a delete too",
  (untidy) => {
    for (const kind of eventKinds) {
      expect(codesOf(kind, { [trip]: untidy })).toEqual([["untidy-reference", trip, trip]]);
    }
    expect(codesOf("delete", { [consumer]: untidy })).toEqual([["untidy-reference", consumer, consumer]]);
  },
);

test("a booking that only the consumer identifies gets a warning, but not its delete", () => {
  for (const payload of [{ [consumer]: "C-1" }, { [trip]: "\u200b", [consumer]: "C-1" }]) {
    expect(codesOf("create", payload)).toEqual([["no-trip-reference", trip, trip]]);
    expect(codesOf("update", payload)).toEqual([["no-trip-reference", trip, trip]]);
    expect(codesOf("delete", payload)).toEqual([]);
  }
});
