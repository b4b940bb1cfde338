import { Refusal } from "@booking-events/http";
import { expect, test } from "vitest";
import { readActivityWindow } from "./activity-window.ts";

const now = new Date("2027-03-01T10:20:30.400Z");
const end = (query: string) => {
  const { hours, days } = readActivityWindow(query, now);
  return { count: hours.length, from: hours[0]?.from.toISOString(), until: hours.at(-1)?.until.toISOString(), days };
};

test("the last 48 hours are whole ones, and the one that has begun", () => {
  expect(end("")).toEqual({
    ...{ count: 48, from: "2027-02-27T11:00:00.000Z", until: "2027-03-01T10:20:30.400Z" },
    days: ["2027-03-01", "2027-02-28", "2027-02-27"],
  });
});

test("a day is one of the last seven", () => {
  const yesterday = { count: 24, from: "2027-02-28T00:00:00.000Z", until: "2027-03-01T00:00:00.000Z" };
  expect(end("day=2027-02-28&other=1")).toEqual({ ...yesterday, days: ["2027-02-28"] });
  expect(end("day=2027-03-01")).toMatchObject({ count: 11, until: "2027-03-01T10:20:30.400Z" });
  expect(end("day=2027-02-23").days).toEqual(["2027-02-23"]);
});

test.each(["2027-02-22", "2027-03-02", "yesterday", "", "2027-2-28", "2027-02-28&day=2027-02-28", "2027-02-28T00:00"])(
  "day=%s is refused",
  (day) => {
    expect(() => readActivityWindow(`day=${day}`, now)).toThrow(Refusal);
  },
);

test.each(["day=%E0%A4%A", "other=%FF", "day=2027-02-28&\xff"])("%s cannot be read, whatever it names", (query) => {
  const expected = expect.objectContaining({ outcome: "invalid-query" });
  expect(() => readActivityWindow(query, now)).toThrow(expected);
});
