import { execFileSync } from "node:child_process";
import { setFlagsFromString } from "node:v8";
import "../index.ts";
import { expect, test } from "vitest";

test("ioredis does not make the methods of strings slow for the whole process", () => {
  setFlagsFromString("--allow-natives-syntax");
  const hasFastProperties = new Function("object", "return %HasFastProperties(object)");
  expect(hasFastProperties(String.prototype)).toBe(true);
  // A class like the one in ioredis, which would slow them down if nothing had been done.
  class Verbatim extends String {}
  expect(hasFastProperties(Object.getPrototypeOf(Verbatim.prototype))).toBe(true);
});

test("ioredis by itself still makes them slow: if this fails, delete the work-around", () => {
  const show = 'import "ioredis"; console.log(%HasFastProperties(String.prototype));';
  const args = ["--allow-natives-syntax", "--input-type=module", "--eval", show];
  expect(execFileSync(process.execPath, args, { cwd: import.meta.dirname, encoding: "utf8" })).toBe("false\n");
});
