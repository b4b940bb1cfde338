import { hash } from "node:crypto";
import { expect, test } from "vitest";
import { KeySet } from "./key-set.ts";

const keyOf = (number: number) => hash("sha256", String(number), "buffer");

test("a set has the keys that were added, with their first marks, and no others, however far it grows", () => {
  const keys = 20_000;
  const set = new KeySet();
  for (let number = 0; number < keys; number += 1) {
    set.add(keyOf(number), number);
    if (set.add(keyOf(Math.floor(number / 2)), 7) !== Math.floor(number / 2)) throw new Error(`wrong at ${number}`);
  }
  expect(set.size).toBe(keys);
  for (let number = 0; number < keys; number += 1) {
    if (!set.has(keyOf(number)) || set.has(keyOf(number + keys))) throw new Error(`wrong at ${number}`);
  }
});

test("a key of zeros is a key like any other", () => {
  const [zeros, other] = [Buffer.alloc(32), Buffer.alloc(32, 1)];
  const set = new KeySet();
  expect(set.has(zeros)).toBe(false);
  set.add(zeros, 0);
  expect([set.has(zeros), set.has(other), set.size]).toEqual([true, false, 1]);
});

// Such keys are found by trying references. With one search through all of them for each, this would take minutes.
test("a partner that chooses keys with equal parts does not make the set slow", () => {
  const keys = Array.from({ length: 200_000 }, () => Buffer.alloc(32));
  for (const [number, key] of keys.entries()) key.writeUInt32BE(number, 0);
  const set = new KeySet();
  for (const key of keys) set.add(key, 1);
  expect(keys.every((key) => set.has(key))).toBe(true);
});
