import { randomRuns } from "@booking-events/harness/random-runs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { bookingFields } from "../payload/booking-input.ts";
import { validatePayload } from "../payload/validate-payload.ts";
import { bookingInput, bookingReference, examples, invalidBookingInput } from "./index.ts";

const runs = randomRuns(200);

test("every generated booking is accepted, as JSON too", () => {
  const names = new Set<string>();
  fc.assert(
    fc.property(bookingInput(), (booking) => {
      const sent = JSON.parse(JSON.stringify(booking));
      for (const name of Object.keys(sent)) names.add(name);
      expect(sent).toEqual(booking);
      expect(validatePayload("create", sent)).toEqual({ success: true, payload: sent });
    }),
    runs,
  );
  expect([...names]).toEqual(expect.arrayContaining(bookingFields.map(({ name }) => name)));
});

test("every generated reference is accepted", () => {
  fc.assert(
    fc.property(bookingReference(), (reference) => {
      expect(validatePayload("delete", reference).success).toBe(true);
    }),
    runs,
  );
});

test("every generated invalid booking is refused, for one reason", () => {
  const messages = new Set<string>();
  fc.assert(
    fc.property(invalidBookingInput(), (booking) => {
      const result = validatePayload("update", booking);
      if (result.success) throw new Error("It was accepted.");
      for (const { message } of result.violationList) messages.add(message);
      expect(result.violationList).toHaveLength(1);
    }),
    runs,
  );
  expect(messages.size).toBeGreaterThan(10);
});

describe("the examples", () => {
  test("are valid or not, as they say", () => {
    expect(examples.length).toBeGreaterThan(40);
    for (const { kind, payload, expect: expected } of examples) {
      const violationList = "valid" in expected ? undefined : expected.violationList;
      const result = validatePayload(kind, payload);
      expect(result.success ? undefined : result.violationList).toEqual(violationList);
    }
  });
});
