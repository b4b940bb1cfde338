import { ExactNumber } from "@booking-events/schema";
import type { RestorableBooking } from "@booking-events/store";
import { describe, expect, test } from "vitest";
import { payloadOf, planBooking, type RestoreRule } from "./plan-restore.ts";

/** It was active then, and has had another content since. */
const booking = {
  ...{ partner: "acme", referenceKind: "trip", reference: "T-1", state: "active", stateThen: "active" },
  ...{ lastSequence: 10, isErased: false, payloadThen: `{"note": "then"}`, hasSameContent: false, isLogWhole: true },
} as RestorableBooking;
const rule: RestoreRule = { deleteNew: false, seenUntil: 10, isInQueue: () => false };

const plan = (more: Partial<RestorableBooking>, otherRule: Partial<RestoreRule> = {}) => {
  const { action, reason } = planBooking({ ...booking, ...more }, { ...rule, ...otherRule });
  expect(action === null).toBe(reason !== null);
  return action ?? reason;
};

describe("a booking", () => {
  test.each<[string, Partial<RestorableBooking>, string]>([
    ["has another content", {}, "update"],
    ["has the same content", { hasSameContent: true }, "same"],
    ["has been deleted since", { state: "deleted" }, "update"],
    ["has been deleted since, with the same content", { state: "deleted", hasSameContent: true }, "update"],
    ["has been created again since", { stateThen: "deleted" }, "delete"],
    ["was deleted and still is", { stateThen: "deleted", state: "deleted" }, "same"],
    ["has come since", { stateThen: null }, "new"],
    ["has come and gone since", { stateThen: null, state: "deleted" }, "same"],
    ["has come before the log begins", { stateThen: null, isLogWhole: false }, "not-in-log"],
    ["has lost its content", { payloadThen: null }, "not-in-log"],
    ["has lost its content, and came back", { payloadThen: null, hasSameContent: true }, "same"],
    ["has lost its content and was deleted", { payloadThen: null, stateThen: "deleted" }, "delete"],
    ["is in a log that has lost its beginning", { isLogWhole: false }, "update"],
  ])("that %s: %j %s", (_, more, wanted) => {
    expect(plan(more)).toBe(wanted);
  });

  test("that has come since is deleted only if that is wanted", () => {
    expect(plan({ stateThen: null }, { deleteNew: true })).toBe("delete");
    expect(plan({ stateThen: null, state: "deleted" }, { deleteNew: true })).toBe("same");
    expect(plan({ stateThen: null, isLogWhole: false }, { deleteNew: true })).toBe("not-in-log");
  });

  test("that was erased never comes back", () => {
    expect(plan({ isErased: true, lastSequence: 11 }, { isInQueue: () => true })).toBe("erased");
  });

  test("that was changed after the preview is left as it is", () => {
    expect(plan({ lastSequence: 11 }, { isInQueue: () => true })).toBe("changed-meanwhile");
  });

  test("that has events in the queue is left as it is", () => {
    const isInQueue = ({ reference }: RestorableBooking) => reference === "T-1";
    expect(plan({ stateThen: null, isLogWhole: false }, { isInQueue })).toBe("in-queue");
    expect(plan({ reference: "T-2" }, { isInQueue })).toBe("update");
  });
});

describe("the restoring event", () => {
  test("sends what the booking held, with all digits of its numbers", () => {
    expect(payloadOf("update", { ...booking, payloadThen: `{"price": 1234567890123456789.10}` })).toEqual({
      price: new ExactNumber("1234567890123456789.10"),
    });
  });

  test.each([
    ["trip", { consumerTripPartnerExternalReference: "T-1" }],
    ["consumer", { consumerPartnerExternalReference: "T-1" }],
  ] as const)("names a deleted %s by its reference only", (referenceKind, payload) => {
    expect(payloadOf("delete", { ...booking, referenceKind })).toEqual(payload);
  });
});
