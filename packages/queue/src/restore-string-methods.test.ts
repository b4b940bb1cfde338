import { setFlagsFromString } from "node:v8";
import "./index.ts";
import { expect, test } from "vitest";

test("ioredis does not make the methods of strings slow for the whole process", () => {
  setFlagsFromString("--allow-natives-syntax");
  const hasFastProperties = new Function("object", "return %HasFastProperties(object)");
  expect(hasFastProperties(String.prototype)).toBe(true);
  // A class like the one in ioredis, which would slow them down if nothing had been done.
  class Verbatim extends String {}
  expect(hasFastProperties(Object.getPrototypeOf(Verbatim.prototype))).toBe(true);
});
