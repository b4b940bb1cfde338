import { NotBegun } from "@booking-events/store";
import { DatabaseError } from "pg";
import { expect, test } from "vitest";
import { describeFault } from "./describe-fault.ts";

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
])("SQLSTATE %s speaks of the event's content: %s", (code, isOfContent) => {
  expect(describeFault(databaseError(code))).toMatchObject({ code, isOfContent });
});

test("what failed before a transaction began is named by its cause", () => {
  const cause = Object.assign(new Error("canary"), { code: "ECONNREFUSED", syscall: "connect" });
  expect(describeFault(new NotBegun("canary", { cause }))).toEqual({
    code: "ECONNREFUSED",
    message: "PostgreSQL could not be reached.",
    isOfContent: false,
  });
});

test("nothing tells of the content", () => {
  for (const error of [databaseError("22007"), new TypeError("canary"), "canary", null, new NotBegun("canary")])
    expect(JSON.stringify(describeFault(error))).not.toContain("canary");
});
