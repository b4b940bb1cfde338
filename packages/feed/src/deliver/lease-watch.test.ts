import { expect, test } from "vitest";
import { LeaseWatch } from "./lease-watch.ts";
import { leaseMs } from "./leases.ts";

const held = { name: "test", holder: "first", seenAt: "12:00:00" };

test("a lease that nobody has is free at once", () => {
  const free = { ...held, holder: null };
  expect(new LeaseWatch().look([free], 0)).toEqual([free]);
});

test("a lease is free once it has been seen without a change for its time", () => {
  const watch = new LeaseWatch();
  expect(watch.look([held], 5_000)).toEqual([]);
  expect(watch.look([held], 5_000 + leaseMs - 1)).toEqual([]);
  expect(watch.look([held], 5_000 + leaseMs)).toEqual([held]);
});

test.each([
  ["renewed", { ...held, seenAt: "12:00:03" }],
  ["renewed by a clock that was set back", { ...held, seenAt: "11:00:00" }],
  ["taken by another process", { ...held, holder: "second" }],
])("its time begins again when it is %s", (_, changed) => {
  const watch = new LeaseWatch();
  watch.look([held], 0);
  expect(watch.look([changed], leaseMs)).toEqual([]);
  expect(watch.look([changed], 2 * leaseMs)).toEqual([changed]);
});

test("a lease that was not looked at for a while has its whole time again", () => {
  const watch = new LeaseWatch();
  watch.look([held], 0);
  watch.look([], 1_000);
  expect(watch.look([held], leaseMs)).toEqual([]);
});

test("what the process itself has lost, as while PostgreSQL was away, is free at once", () => {
  const watch = new LeaseWatch();
  watch.noteOwn({ name: "test", token: "first" });
  watch.noteOwn({ name: "another", token: "second" });
  expect(watch.look([held, { ...held, name: "other" }, { ...held, name: "another" }], 0)).toEqual([held]);
});
