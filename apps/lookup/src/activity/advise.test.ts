import { bookingFields, violationCodes, warningCodes } from "@booking-events/schema";
import { expect, test } from "vitest";
import { adviseOnViolation, adviseOnWarning } from "./advise.ts";

const generic = adviseOnWarning("consumerPhone", "a-code-of-a-later-release");
const fields = bookingFields.map(({ name }) => name);

test.each(warningCodes)("a warning %s says what to send instead", (code) => {
  // Each code is about some field, or about the request.
  const advice = new Set([...fields, ""].map((field) => adviseOnWarning(field, code)));
  advice.delete(generic);
  expect(advice.size).toBeGreaterThan(0);
});

test.each(violationCodes)("a violation %s says what to send instead", (code) => {
  const advice = new Set([...fields, "unlisted", "payload"].map((field) => adviseOnViolation(field, code)));
  advice.delete(generic);
  expect(advice.size).toBeGreaterThan(0);
});

test("the advice is that of the answer", () => {
  expect(adviseOnViolation("consumerPhone", "null")).toBe(
    "Must be a string of up to 8,192 characters; got null. Omit the field if you have no value.",
  );
  expect(adviseOnViolation("consumerTripArrivalDate", "malformed")).toMatch(/^Must be a date such as 2026-06-14/);
  expect(adviseOnViolation("unlisted", "too-deep")).toMatch(/levels deep/);
  expect(adviseOnWarning("consumerTripArrivalDate", "retired")).toMatch(/renamed/);
  expect(adviseOnWarning("consumerTripDepartureFlightNumber", "retired")).toMatch(/airline/);
  expect(adviseOnWarning("agentPhoneNumber", "unreadable-phone")).toMatch(/E\.164/);
});

test("the advice claims nothing about a payload that was not kept", () => {
  expect(adviseOnViolation("consumerTripPartnerExternalReference", "missing")).toMatch(
    /^Must be present, because it identifies the booking\. If [^.]+ instead\.$/,
  );
  // The field is the one that was probably meant: it is the other name that is not listed.
  expect(adviseOnWarning("consumerGivenName", "similar-name")).toBe(
    "You sent a similar name that the contract does not list. If you mean consumerGivenName, correct the name.",
  );
});

test("what a later release has written gets the general advice", () => {
  for (const field of ["aFieldOfALaterRelease", "__proto__", ""]) {
    expect(adviseOnWarning(field, "another")).toBe(generic);
    expect(adviseOnViolation(field, "another")).toBe(generic);
  }
});
