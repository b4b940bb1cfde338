import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { normaliseBooking, readingsOf } from "../src/normalise/index.ts";
import { readings } from "./readings.ts";

test("it says of which fields the read model has more than the text", () => {
  const { payload } = JSON.parse(readFileSync(new URL("../examples/full-booking.json", import.meta.url), "utf8"));
  const read = Object.keys(payload).filter((name) => {
    const values = Object.values(normaliseBooking({ [name]: payload[name] }, { defaultCountry: null }));
    return values.some((value) => value !== null);
  });

  expect(Object.keys(readings)).toEqual(read);
});

test("partners can ask for everything that is read", () => {
  const read = Object.keys(normaliseBooking({}, { defaultCountry: null }));

  expect([...readingsOf.values()].flat().toSorted()).toEqual(read.toSorted());
});
