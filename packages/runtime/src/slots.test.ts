import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { createSlots } from "./slots.ts";

test("some of the work runs at once, and the rest in order as soon as a slot is free, even after a failure", async () => {
  const inSlot = createSlots(2);
  const begun: string[] = [];
  const ends = new Map<string, (error?: Error) => void>();
  const run = (name: string) =>
    inSlot(() => {
      begun.push(name);
      return new Promise<string>((resolve, reject) =>
        ends.set(name, (error) => (error === undefined ? resolve(name) : reject(error))),
      );
    });
  const results = ["a", "b", "c", "d"].map((name) => run(name).catch(({ message }) => message));
  await nextTurn();
  expect(begun).toEqual(["a", "b"]);
  ends.get("b")?.(new Error("failed"));
  await nextTurn();
  expect(begun).toEqual(["a", "b", "c"]);
  for (const name of ["c", "a"]) ends.get(name)?.();
  await nextTurn();
  expect(begun).toEqual(["a", "b", "c", "d"]);
  ends.get("d")?.();
  expect(await Promise.all(results)).toEqual(["a", "failed", "c", "d"]);
});
