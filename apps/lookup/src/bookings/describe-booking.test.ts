import { Refusal } from "@booking-events/http";
import { expect, test } from "vitest";
import { readBookingQuery } from "./describe-booking.ts";
import { readWantedReadings } from "./read-wanted-readings.ts";

/** As Node has the query of a URL: each byte is a character. */
const asBytes = (text: string) => Buffer.from(text).toString("latin1");

test.each([
  ["reference=TRIP-1", "TRIP-1", "trip"],
  ["referenceKind=consumer&reference=Zo%C3%AB+%2B1", "Zoë +1", "consumer"],
  [asBytes("reference=Zoë"), "Zoë", "trip"],
  ["reference=%20S%C2%A09%E2%80%8B%0D%0A", "S 9", "trip"],
  [asBytes("reference=Zoe\u0308"), "Zoë", "trip"],
  ["reference=%EF%BF%BD&other=%41&other=", "\ufffd", "trip"],
])("%s names the booking %s", (query, reference, referenceKind) => {
  expect(readBookingQuery(query)).toEqual({ reference, referenceKind });
});

test.each([
  ["", "nothing"],
  ["reference=", "no reference"],
  ["reference=%20%E2%80%8B", "only what is invisible"],
  [`reference=${"x".repeat(8_193)}`, "a reference that is too long"],
  ["reference=Zo%EB", "an escape that is not UTF-8"],
  ["reference=Zo\u00eb", "a byte that is not UTF-8"],
  ["reference=A&other=%EB", "another such escape"],
  ["reference=A&reference=B", "two references"],
  ["reference=A&%72eference=B", "two references, one as an escape"],
  ["reference=A&referenceKind=agent", "an unknown kind"],
  ["reference=A%00", "U+0000"],
])("%s names no booking: %s", (query) => {
  expect(() => readBookingQuery(query)).toThrow(Refusal);
});

test("a percent sign that begins no escape stands for itself", () => {
  expect(readBookingQuery("reference=100%")).toMatchObject({ reference: "100%" });
});

test("readings are asked for by the names of fields, and each brings all that is read of it", () => {
  const phone = ["consumerPhone", "consumerPhoneIsAssumed"];
  expect(readWantedReadings("reference=A")).toEqual([]);
  expect(readWantedReadings("reference=A&fields=")).toEqual([]);
  expect(readWantedReadings("fields=consumerPhone,+consumerPhone&fields=agentEmail")).toEqual([...phone, "agentEmail"]);
  expect(readWantedReadings("fields=all")).toEqual(expect.arrayContaining(phone));
  expect(readWantedReadings("fields=all")).toHaveLength(23);
});

test.each(["consumerGivenName", "consumerPhone,x", "__proto__", "consumerphone", "payload", "consumerPhoneIsAssumed"])(
  "nothing is read of fields=%s",
  (fields) => {
    expect(() => readWantedReadings(`fields=${fields}`)).toThrow(Refusal);
  },
);
