import { expect, test } from "vitest";
import { GuestHits } from "./guest-hits.ts";

test("as many near hits are kept as exact ones may be, and whoever adds one is told", () => {
  const hits = new GuestHits(2);
  const add = (closeness: "near" | "exact") => hits.add({ closeness });
  expect([add("near"), add("near"), add("near")]).toEqual([true, true, false]);
  expect([add("exact"), hits.isFull]).toEqual([true, false]);
  expect([add("exact"), hits.isFull]).toEqual([true, true]);
  expect(add("exact")).toBe(false);
  expect(hits.all.map(({ closeness }) => closeness)).toEqual(["near", "near", "exact", "exact"]);
});
