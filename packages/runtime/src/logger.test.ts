import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { describeError, safeMessage } from "./logger.ts";

describe("the log of a process", () => {
  /** Returns the output of a process that runs this code with a logger. */
  async function outputOf(code: string): Promise<string> {
    const loggerUrl = new URL("./logger.ts", import.meta.url).href;
    const program = `import { createLogger } from ${JSON.stringify(loggerUrl)};
      const logger = createLogger({ name: "test", level: "info" });
      ${code}`;
    const child = spawn(process.execPath, ["--input-type=module", "--eval", program], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    return text(child.stdout);
  }
  const linesOf = (output: string) => output.trimEnd().split("\n");

  test("has every line when the process exits immediately, even more than one batch", async () => {
    const output = await outputOf("for (let i = 0; i < 400; i += 1) logger.info({ i }, 'line'); process.exit(0);");
    const numbers = linesOf(output).map((line) => JSON.parse(line).i);
    expect(output.length).toBeGreaterThan(32_768);
    expect(numbers.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 400 }, (_, i) => i));
  });

  test("has a line soon, even if the process continues without logging more", async () => {
    const output = await outputOf(
      "logger.info('first'); setTimeout(() => process.kill(process.pid, 'SIGKILL'), 2_000);",
    );
    expect(linesOf(output)).toEqual([expect.stringContaining('"msg":"first"')]);
  });

  test("has its last line even if the reader is slow and earlier lines fill the pipe", async () => {
    const output = await outputOf(`
      import { writeSync } from "node:fs";
      try { for (;;) writeSync(1, "-".repeat(4_095) + "\\n"); } catch {}
      logger.info("last");
      process.exit(0);`);
    expect(linesOf(output).at(-1)).toContain('"msg":"last"');
  });

  test("has a fatal line, and those before it, immediately", async () => {
    const output = await outputOf(`
      for (let i = 0; i < 100; i += 1) logger.info("é".repeat(200));
      logger.fatal("last");
      process.kill(process.pid, "SIGKILL");`);
    expect(linesOf(output)).toHaveLength(101);
    expect(linesOf(output).at(-1)).toContain('"msg":"last"');
  });

  test("has its last line when the event loop is empty", async () => {
    expect(linesOf(await outputOf("logger.info('last');"))).toEqual([expect.stringContaining('"msg":"last"')]);
  });
});

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
