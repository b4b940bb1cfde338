import { describe, expect, test } from "vitest";
import { describeError, safeMessage } from "./logger.ts";

describe("an error in the log", () => {
  test("of unknown origin keeps its class and frames, not its message", () => {
    const description = describeError(new TypeError("no such guest: canary\nsecond line canary"));
    expect(description.type).toBe("TypeError");
    expect(description.stack).toMatch(/^ {4}at /);
    expect(JSON.stringify(description)).not.toContain("canary");
  });

  test("from PostgreSQL keeps its SQLSTATE, and none of its properties", () => {
    const error = Object.assign(new Error("invalid input: canary"), {
      code: "22007",
      detail: "canary",
      where: "canary",
    });
    expect(describeError(error)).toMatchObject({ code: "22007" });
    expect(JSON.stringify(describeError(error))).not.toContain("canary");
  });

  test("from Redis keeps the first word of the reply", () => {
    const error = Object.assign(new Error("OOM command not allowed: canary"), { name: "ReplyError" });
    expect(describeError(error)).toMatchObject({ type: "ReplyError", code: "OOM" });
    expect(JSON.stringify(describeError(error))).not.toContain("canary");
  });

  test("from the operating system keeps its message", () => {
    const error = Object.assign(new Error("connect ECONNREFUSED 127.0.0.1:6379"), {
      syscall: "connect",
      code: "ECONNREFUSED",
    });
    expect(describeError(error)).toMatchObject({
      code: "ECONNREFUSED",
      message: "connect ECONNREFUSED 127.0.0.1:6379",
    });
  });

  test("of our own keeps its message, and its cause is described by the same rules", () => {
    const error = Object.assign(new Error("ours", { cause: new Error("canary") }), { [safeMessage]: true });
    const description = describeError(error);
    expect(description).toMatchObject({ message: "ours", cause: { type: "Error" } });
    expect(JSON.stringify(description)).not.toContain("canary");
  });

  test.each([["canary"], [null], [{ canary: 1 }]])("that is no error (%j) keeps its type", (thrown) => {
    expect(describeError(thrown)).toEqual({ type: typeof thrown });
  });
});
