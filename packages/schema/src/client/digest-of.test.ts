import { createHash } from "node:crypto";
import { randomRuns } from "@booking-events/harness/random-runs";
import canonicalize from "canonicalize";
import fc from "fast-check";
import { expect, test } from "vitest";
import { ExactNumber } from "../json/exact-number.ts";
import { replaceUnstorableText } from "../payload/replace-unstorable-text.ts";
import { bookingInput, examples } from "../testing/index.ts";
import { digestOf } from "./digest-of.ts";

/** With the implementation that the service uses. */
function expectedOf(payload: object): string {
  return createHash("sha256")
    .update(canonicalize(payload) ?? "")
    .digest("hex");
}

test("the digest of every generated booking is the service's", async () => {
  await fc.assert(
    fc.asyncProperty(bookingInput(), async (payload) => {
      expect(await digestOf(payload)).toBe(expectedOf(payload));
    }),
    randomRuns(60),
  );
});

test("the digest of every valid example is the service's", async () => {
  // The library would round its numbers.
  const valid = examples.filter(({ name, expect: expected }) => "valid" in expected && name !== "exact-numbers");
  expect(valid.length).toBeGreaterThan(5);
  for (const { payload } of valid) expect(await digestOf(payload)).toBe(expectedOf(payload));
});

test("a number has all of its digits in the digest", async () => {
  const payload = { orderId: new ExactNumber("9007199254740993.0"), rates: [new ExactNumber("1e400"), 1e21] };
  const canonical = '{"orderId":9007199254740993,"rates":[1e+400,1e+21]}';
  expect(await digestOf(payload)).toBe(createHash("sha256").update(canonical).digest("hex"));
});

test("the digest of what a database can't store is that of what the service stores instead", async () => {
  const sent = { "a\ud800": ["\0\0", "\udc00\ud83d\ude00", "\\u0000", "\\\0", "\u0001\ufffd"] };
  const stored = { "a\ufffd": ["\ufffd\ufffd", "\ufffd\ud83d\ude00", "\\u0000", "\\\ufffd", "\u0001\ufffd"] };
  expect(await digestOf(sent)).toBe(expectedOf(stored));
  const digest = await digestOf(sent);
  replaceUnstorableText(sent);
  expect(sent).toEqual(stored);
  expect(await digestOf(sent)).toBe(digest);
});

test("names are in the order in which the service has them, after what it stores in place of U+0000", async () => {
  const sent = { "\0": 1, b: 2, "x\ud800": { "\0c": 3, "\ue000": 4 } };
  const digest = await digestOf(sent);
  replaceUnstorableText(sent);
  expect(digest).toBe(expectedOf(sent));
});

test("the order of fields, and what JSON leaves out, make no difference", async () => {
  const digest = await digestOf({ b: 1, a: [{ d: -0, c: null }] });

  expect(await digestOf({ a: [{ c: null, d: 0 }], b: 1, e: undefined })).toBe(digest);
  class Booking {
    b = 1;
    toJSON() {
      return this;
    }
  }
  expect(await digestOf(new Booking())).toBe(expectedOf({ b: 1 }));
  expect(await digestOf({ a: [{ c: undefined, d: new Date(0) }, undefined] })).toBe(
    expectedOf({ a: [{ d: "1970-01-01T00:00:00.000Z" }, null] }),
  );
  expect(await digestOf({ a: [{ c: null, d: 0 }], b: 2 })).not.toBe(digest);
});

test("the digest does not depend on texts that were parsed before", async () => {
  JSON.parse('{"first":0,"x\\\\":0}');

  expect(await digestOf({ first: 0, "x\n": 0 })).toBe(expectedOf({ first: 0, "x\n": 0 }));
});
