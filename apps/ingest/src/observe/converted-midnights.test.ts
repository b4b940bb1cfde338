import { describe, expect, test } from "vitest";
import { ConvertedMidnights } from "./converted-midnights.ts";

let bookings = 0;

/** Sends a booking for each date, and returns the fields that the last one was warned of. */
function sendAll(midnights: ConvertedMidnights, dates: string[], partner = "acme"): string[] {
  let fields: string[] = [];
  for (const consumerTripArrivalDate of dates) {
    bookings += 1;
    fields = send(midnights, { consumerTripArrivalDate }, `booking-${bookings}`, partner);
  }
  return fields;
}

function send(midnights: ConvertedMidnights, dates: object, reference: string, partner = "acme"): string[] {
  const payload = { consumerTripPartnerExternalReference: reference, ...dates };
  return midnights.check(partner, payload).map(({ code, field, propertyPath }) => {
    expect([code, propertyPath]).toEqual(["perhaps-the-day-before", [field]]);
    return field;
  });
}

const days = (count: number, time: string) =>
  Array.from({ length: count }, (_, index) => `2027-06-${String((index % 28) + 1).padStart(2, "0")}${time}`);

test("the twentieth date-time in UTC with the same time of day gets a warning, and those after it", () => {
  const midnights = new ConvertedMidnights();
  expect(sendAll(midnights, days(19, "T22:00:00.000Z"))).toEqual([]);
  expect(sendAll(midnights, days(1, "T22:00:00.000Z"))).toEqual(["consumerTripArrivalDate"]);
  expect(sendAll(midnights, days(1, "T22:00:00.000Z"))).toEqual(["consumerTripArrivalDate"]);
});

test("each booking counts once, by the reference that identifies it", () => {
  const midnights = new ConvertedMidnights();
  const check = (trip: string, consumer: string) =>
    midnights.check("acme", {
      consumerTripPartnerExternalReference: trip,
      consumerPartnerExternalReference: consumer,
      consumerTripArrivalDate: "2027-06-14T22:00:00Z",
    });
  for (const spaces of [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]) check(`booking${" ".repeat(spaces)}`, "consumer");
  for (let consumer = 1; consumer < 19; consumer += 1) expect(check(" ", `consumer-${consumer}`)).toEqual([]);
  expect(check(" ", "consumer-19")).toHaveLength(1);
});

describe("the time of day is read from", () => {
  test.each([
    "T22:00Z",
    "t22:00:00z",
    " 22:00:00 UTC",
    "T22:00:00+00:00",
    "T22:00:00.000+0000",
    "T22:00-00",
    "T22:00Z[UTC]",
  ])("%s", (time) => expect(sendAll(new ConvertedMidnights(), days(20, time))).toEqual(["consumerTripArrivalDate"]));
});

describe("no warning gets", () => {
  test.each([
    ["a day", ""],
    ["a day in UTC", "Z"],
    ["a local midnight with its zone", "T00:00:00+02:00"],
    ["a time without a zone", "T22:00:00"],
    ["a midnight in UTC, because the day as written is meant", "T00:00:00Z"],
    ["a midnight west of Greenwich, because it is on the day as written", "T05:00:00Z"],
    ["a time that is no time zone's midnight", "T22:07:00Z"],
    ["the last second of a day", "T23:59:59Z"],
    ["a time with seconds", "T22:00:01Z"],
    ["a time with a fraction", "T22:00:00.001Z"],
  ])("%s", (_, time) => {
    expect(sendAll(new ConvertedMidnights(), days(50, time))).toEqual([]);
  });
});

test("nine in ten must have the same time of day, and the others get no warning", () => {
  const midnights = new ConvertedMidnights();
  sendAll(midnights, days(18, "T22:00:00Z"));
  expect(sendAll(midnights, ["2027-06-01T13:15:00Z", "2027-06-01T09:20:00Z"])).toEqual([]);
  expect(sendAll(midnights, days(1, "T22:00:00Z"))).toEqual(["consumerTripArrivalDate"]);
  expect(sendAll(midnights, ["2027-06-01T13:15:00Z", "2027-06-01T09:20:00Z"])).toEqual([]);
  expect(sendAll(midnights, days(1, "T22:00:00Z"))).toEqual([]);
});

test("midnights of summer and winter count together", () => {
  const midnights = new ConvertedMidnights();
  expect(sendAll(midnights, [...days(15, "T22:00:00Z"), ...days(15, "T23:00:00Z")])).toHaveLength(1);
  expect(sendAll(midnights, days(1, "T22:00:00Z"))).toHaveLength(1);

  const inLondon = new ConvertedMidnights();
  expect(sendAll(inLondon, [...days(15, "T00:00:00Z"), ...days(15, "T23:00:00Z")])).toHaveLength(1);
  expect(sendAll(inLondon, days(1, "T00:00:00Z"))).toEqual([]);

  const twoHoursApart = new ConvertedMidnights();
  expect(sendAll(twoHoursApart, [...days(15, "T22:00:00Z"), ...days(15, "T20:00:00Z")])).toEqual([]);
});

test("only the last fifty count, so a corrected sender gets no warnings for long", () => {
  const midnights = new ConvertedMidnights();
  expect(sendAll(midnights, days(500, "T22:00:00Z"))).toHaveLength(1);
  const others = Array.from({ length: 6 }, (_, index) => `2027-06-01T1${index}:20:00Z`);
  expect(sendAll(midnights, [...others, "2027-06-01T22:00:00Z"])).toEqual([]);
  expect(sendAll(midnights, days(45, "T22:00:00Z"))).toHaveLength(1);
});

test("a booking that is sent again and again counts once, and each of its dates", () => {
  const midnights = new ConvertedMidnights();
  const dates = { consumerTripArrivalDate: "2027-06-01T22:00:00Z", consumerTripReturnDate: "2027-06-08T22:00:00Z" };
  for (let round = 0; round < 100; round += 1) expect(send(midnights, dates, "TRIP-1")).toEqual([]);
  for (let booking = 2; booking < 10; booking += 1) expect(send(midnights, dates, `TRIP-${booking}`)).toEqual([]);
  expect(send(midnights, dates, "TRIP-10")).toEqual(["consumerTripReturnDate"]);
  expect(send(midnights, dates, "TRIP-10")).toEqual(["consumerTripArrivalDate", "consumerTripReturnDate"]);
});

test("each partner is judged by its own dates, until it leaves", () => {
  const midnights = new ConvertedMidnights();
  sendAll(midnights, days(20, "T22:00:00Z"));
  expect(sendAll(midnights, days(1, "T22:00:00Z"), "zenith")).toEqual([]);
  midnights.keep([{ id: "acme" }]);
  expect(sendAll(midnights, days(1, "T22:00:00Z"))).toHaveLength(1);
  midnights.keep([{ id: "zenith" }]);
  expect(sendAll(midnights, days(1, "T22:00:00Z"))).toEqual([]);
});

test("no value is in a warning", () => {
  const midnights = new ConvertedMidnights();
  sendAll(midnights, days(20, "T22:00:00Z"));
  const [warning] = midnights.check("acme", {
    consumerTripPartnerExternalReference: "canary",
    consumerTripArrivalDate: "2987-06-13T22:00:00Z",
  });
  expect(JSON.stringify(warning)).not.toMatch(/canary|2987/);
});

test("a long text costs no more than a date", () => {
  const midnights = new ConvertedMidnights();
  const spaces = `2027-06-01T22:00:00Z${" ".repeat(8_000)}`;
  expect(
    sendAll(
      midnights,
      Array.from({ length: 30 }, () => spaces),
    ),
  ).toEqual([]);
});
