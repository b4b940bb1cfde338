import { expect, test } from "vitest";
import { findWarnings } from "../index.ts";

const warningsOf = (fields: Record<string, unknown>) =>
  findWarnings("create", { consumerTripPartnerExternalReference: "booking-2001", ...fields });

test.each([
  ["consumerTripBookingDate", "consumerTripArrivalDate", "consumerTripReturnDate"],
  ["consumerTripDepartureFlightAirline", "consumerTripDepartureFlightNumber", "consumerTripDepartureFlightNumber"],
])("%s gets a warning that names %s", (name, field, named) => {
  for (const value of ["2026-06-14", 0, false, []]) {
    const warning = { code: "retired", propertyPath: [name], field, message: expect.stringContaining(`Send ${field}`) };
    expect(warningsOf({ [name]: value })).toEqual([warning]);
  }
  expect(warningsOf({ [name]: "x" })[0]?.message).toContain(named);
});

test.each([null, "", " \t"])("without a value (%j) there is no warning", (value) => {
  expect(warningsOf({ consumerTripBookingDate: value, consumerTripDepartureFlightAirline: value })).toEqual([]);
});

test("in a delete, retired names mean nothing", () => {
  const payload = { consumerTripPartnerExternalReference: "T-1", consumerTripBookingDate: "2026-06-14" };
  expect(findWarnings("delete", payload)).toEqual([]);
});
