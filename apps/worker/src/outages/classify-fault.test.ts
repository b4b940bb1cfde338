import { NotBegun, OtherDatabase } from "@booking-events/store";
import { DatabaseError } from "pg";
import { expect, test } from "vitest";
import { classifyFault, isConstraintViolation } from "./classify-fault.ts";

function databaseError(code: string): DatabaseError {
  return Object.assign(new DatabaseError("canary", 6, "error"), { code, detail: "canary" });
}

test.each([
  ["22P05", true],
  ["23502", false],
  ["23505", false],
  ["54001", true],
  ["57014", false],
  ["53100", false],
  ["XX000", false],
])("SQLSTATE %s blames the event's content: %s", (code, isOfContent) => {
  expect(classifyFault(databaseError(code))).toMatchObject({ code, isOfContent });
});

test("a failure before a transaction began has the code of its cause", () => {
  const cause = Object.assign(new Error("canary"), { code: "ECONNREFUSED", syscall: "connect" });
  expect(classifyFault(new NotBegun("canary", { cause }))).toEqual({
    code: "ECONNREFUSED",
    message: "PostgreSQL could not be reached.",
    isOfContent: false,
  });
});

test("no fault holds anything of the content", () => {
  for (const error of [databaseError("22007"), new TypeError("canary"), "canary", null, new NotBegun("canary")])
    expect(JSON.stringify(classifyFault(error))).not.toContain("canary");
});

test.each<[error: unknown, code: string, message: string]>([
  [databaseError("57014"), "57014", "PostgreSQL refused to apply the event (SQLSTATE 57014)."],
  [new DatabaseError("canary", 6, "error"), "error", "The worker failed to apply the event (error)."],
  [new NotBegun("canary"), "CONNECTION", "PostgreSQL could not be reached."],
  [new TypeError("canary"), "TypeError", "The worker failed to apply the event (TypeError)."],
  [
    Object.assign(new Error("canary"), { code: "ECONNRESET", syscall: "read" }),
    ...(["ECONNRESET", "The worker failed to apply the event (ECONNRESET)."] as const),
  ],
  [new OtherDatabase("1", "2"), "OTHER_DATABASE", new OtherDatabase("1", "2").message],
  ["canary", "UNKNOWN", "The worker threw a value that is not an error."],
])("%s has the code %s and a message, and does not blame the content", (error, code, message) => {
  expect(classifyFault(error)).toEqual({ code, message, isOfContent: false });
});

test("the message names the table, column and constraint that PostgreSQL names", () => {
  const names = { table: "bookings", column: "state", constraint: "bookings_state_check" };
  expect(classifyFault(Object.assign(databaseError("23514"), names)).message).toBe(
    "PostgreSQL refused to apply the event (SQLSTATE 23514, table bookings, column state, constraint bookings_state_check).",
  );
  expect(classifyFault(Object.assign(databaseError("22001"), { column: "kind" })).message).toBe(
    "PostgreSQL can't hold what the event contains (SQLSTATE 22001, column kind).",
  );
});

test("the message says if PostgreSQL can't hold the content", () => {
  expect(classifyFault(databaseError("22P05")).message).toBe(
    "PostgreSQL can't hold what the event contains (SQLSTATE 22P05).",
  );
});

test.each([
  ["23505", true],
  ["23502", true],
  ["22P05", false],
  ["42P23", false],
])("SQLSTATE %s says that a constraint was violated: %s", (code, isViolation) => {
  expect(isConstraintViolation(classifyFault(databaseError(code)))).toBe(isViolation);
});
