import { describe, expect, test } from "vitest";
import { type EventKind, validatePayload } from "../index.ts";
import { describeSeenInstead } from "./seen-instead.ts";

const trip = "consumerTripPartnerExternalReference";

/** What the violation says beyond that the reference is missing. */
function hintFor(payload: object, kind: EventKind = "create"): string {
  const result = validatePayload(kind, payload);
  const violation = result.success ? undefined : result.violationList.find(({ code }) => code === "missing");
  expect(violation).toMatchObject({ propertyPath: [trip] });
  return violation?.message.replace(/^Must be present, .*? instead\. ?/, "") ?? "";
}

describe("the violation for a missing reference says what was seen instead", () => {
  test.each<[string, object, string]>([
    [
      "in snake_case",
      { consumer_trip_partner_external_reference: "canary" },
      `There is "consumer_trip_partner_external_reference". Name it ${trip}.`,
    ],
    [
      "in PascalCase",
      { ConsumerTripPartnerExternalReference: "canary" },
      `There is "ConsumerTripPartnerExternalReference". Name it ${trip}.`,
    ],
    [
      "with a mistake",
      { consumerTripPartnerExternalReferense: "canary" },
      `There is "consumerTripPartnerExternalReferense". Name it ${trip}.`,
    ],
    [
      "the consumer's",
      { "consumer-partner-external-reference": "canary" },
      'There is "consumer-partner-external-reference". Name it consumerPartnerExternalReference.',
    ],
    [
      "behind a byte order mark",
      { [`\ufeff${trip}`]: "canary" },
      `There is a byte order mark before ${trip}. Remove it.`,
    ],
    ["joined by &amp;", { [`amp;${trip}`]: "canary" }, "The form is joined by &amp;. Join its fields by & alone."],
    ["empty", { [trip]: "" }, `There is ${trip}, but it is empty.`],
    [
      "blank",
      { consumerPartnerExternalReference: " \u200b" },
      "There is consumerPartnerExternalReference, but it is empty.",
    ],
    [
      "by another name",
      { bookingReference: "canary" },
      `There is "bookingReference". If it is the reference, name it ${trip}.`,
    ],
    [
      "in a wrapper",
      { event: "created", data: { [trip]: "canary" } },
      `There is "${trip}" in "data". Send the fields of that object as the payload itself.`,
    ],
    [
      "in any wrapper, in snake_case",
      { my_event: { consumer_trip_partner_external_reference: "canary" } },
      `There is "consumer_trip_partner_external_reference" in "my_event". Send the fields of that object as the payload itself, and name it ${trip}.`,
    ],
    [
      "in a wrapper, by another name",
      { booking: { bookingId: 7 } },
      `There is "bookingId" in "booking". Send the fields of that object as the payload itself, with the reference as ${trip}.`,
    ],
    [
      "in a wrapper, as a form",
      { "booking[consumerGivenName]": "canary", [`booking[${trip}]`]: "canary" },
      `There is "${trip}" in "booking". Send the fields of that object as the payload itself.`,
    ],
    [
      "two levels down",
      { data: { attributes: { [trip]: "canary" } } },
      `There is "${trip}" in "attributes" in "data". Send the fields of that object as the payload itself.`,
    ],
    [
      "three levels down, in a form",
      { "a[b][c][booking_id]": "canary" },
      `There is "booking_id" in "c" in "b" in "a". Send the fields of that object as the payload itself, with the reference as ${trip}.`,
    ],
    [
      "in an array",
      { bookings: [{ [trip]: "canary" }, {}] },
      `There is "${trip}" in "bookings". Send an event for each object of the array, with its fields as the payload itself.`,
    ],
    [
      "in an array, as a form",
      { [`bookings[0][${trip}]`]: "canary" },
      `There is "${trip}" in "bookings". Send an event for each object of the array, with its fields as the payload itself.`,
    ],
    [
      "in an object of an array in a wrapper",
      { data: { items: [{ booking: { trip_id: 7 } }] } },
      `There is "trip_id" in "booking" in "items" in "data". Send an event for each object of the array, with its fields as the payload itself, with the reference as ${trip}.`,
    ],
    [
      "in a wrapper rather than by another name",
      { bookingId: "canary", data: { [trip]: "canary" } },
      `There is "${trip}" in "data". Send the fields of that object as the payload itself.`,
    ],
  ])("%s", (_, payload, hint) => {
    expect(hintFor(payload)).toBe(hint);
    expect(hintFor(payload, "delete")).toBe(hint);
  });
});

describe("it says nothing more if", () => {
  test.each<[string, object]>([
    ["the payload is empty", {}],
    ["no name resembles a reference", { consumerPhone: "x", id: 1, data: { id: 1 } }],
    ["it is in a later object of an array", { data: [{}, { [trip]: "x" }] }],
    ["it is in an array of arrays", { data: [[{ [trip]: "x" }]] }],
    ["it is four levels down", { a: { b: { c: { d: { [trip]: "x" } } } }, [`a[b][c][d][${trip}]`]: "x" }],
    ["its brackets are not closed", { "a[booking_id": "x", "a[b]booking_id": "x" }],
    ["a name that means a reference has no value of its own", { bookingId: null }],
  ])("%s", (_, payload) => expect(hintFor(payload)).toBe(""));
});

test("at most fifty names are looked at", () => {
  const others = Array.from({ length: 49 }, (_, index) => [`other${index}`, "x"]);
  expect(describeSeenInstead({ ...Object.fromEntries(others), bookingId: "x" })).toBeDefined();
  expect(describeSeenInstead({ ...Object.fromEntries(others), other: "x", bookingId: "x" })).toBeUndefined();
  expect(describeSeenInstead({ data: Object.fromEntries(others), bookingId: "x" })).toBeUndefined();
  const inData = { ...Object.fromEntries(others.slice(1)), [trip]: "x" };
  expect(describeSeenInstead({ data: inData })).toBeDefined();
  expect(describeSeenInstead({ data: { other: "x", ...inData } })).toBeUndefined();
});

test("a name that may be data is not repeated", () => {
  expect(describeSeenInstead({ "+44 7911 123456": { [trip]: "x" } })).not.toMatch(/44|7911/);
  expect(describeSeenInstead({ [`consumer\nTrip_Partner_External_Reference`]: "x" })).not.toContain("\n");
});
