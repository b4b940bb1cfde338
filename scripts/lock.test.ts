import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { withLock } from "./lock.ts";

let dir: string;
const { signal } = new AbortController();

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "lock-"));
});

afterEach(() => {
  rmSync(dir, { recursive: true, force: true });
});

test("works under one lock take turns", async () => {
  const log: string[] = [];
  const work = (name: string) => async () => {
    log.push(`${name} begins`);
    await new Promise((resolve) => setImmediate(resolve));
    log.push(`${name} ends`);
  };
  await Promise.all([withLock(join(dir, "lock"), signal, work("a")), withLock(join(dir, "lock"), signal, work("b"))]);
  expect(log).toEqual(["a begins", "a ends", "b begins", "b ends"]);
});

test("the lock of a process that is gone holds nobody up", async () => {
  writeFileSync(join(dir, "lock"), JSON.stringify({ pid: process.pid, began: "at another time" }));
  expect(await withLock(join(dir, "lock"), signal, async () => "done")).toBe("done");
});

test("a lock is given back when the work fails", async () => {
  await expect(withLock(join(dir, "lock"), signal, () => Promise.reject(new Error("no")))).rejects.toThrow("no");
  expect(await withLock(join(dir, "lock"), signal, async () => "done")).toBe("done");
});
