import { once } from "node:events";
import { setImmediate } from "node:timers/promises";
import { beforeEach, expect, test, vi } from "vitest";
import { type Check, runBeside } from "./checks.ts";

const ends = (name: string, script: string): Check => ({ name, program: "node", args: ["--eval", script] });
/** Ends by a signal only. */
const tests = ends("Tests", "setInterval(() => {}, 1_000)");
const { signal: neverStopped } = new AbortController();

let printed = "";
beforeEach(() => {
  printed = "";
  vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    printed += text;
    return true;
  });
});

test("checks that succeed run in their order, print nothing if they are quiet, and the result is 0", async () => {
  const quiet = [ends("Format", "console.log('fine')"), ends("Types", "console.log('fine')")];
  expect(await runBeside({ tests: ends("Tests", ""), quiet, stop: neverStopped })).toBe(0);
  expect(printed).toBe("\n── Tests\n");
});

test("a quiet check that fails ends the tests, and its output and name are the last that is printed", async () => {
  const types = ends("Types", "console.log('wrong type'); console.error('in a.ts'); process.exitCode = 2");
  expect(await runBeside({ tests, quiet: [types, tests], stop: neverStopped })).toBe(2);
  expect(printed).toMatch(/── Tests\n\n(wrong type|in a\.ts)\n(wrong type|in a\.ts)\n\n✗ Types: failed\.\n$/);
});

test("a quiet check that fails while the servers are installed waits for that, and there are no tests", async () => {
  let isInstalled = false;
  const prepare = async (signal: AbortSignal) => {
    if (!signal.aborted) await once(signal, "abort");
    await setImmediate();
    isInstalled = true;
  };
  const types = ends("Types", "process.exitCode = 2");
  expect(await runBeside({ prepare, tests, quiet: [types], stop: neverStopped })).toBe(2);
  expect(isInstalled).toBe(true);
  expect(printed).toBe("\n\n✗ Types: failed.\n");
});

test("tests that fail end the quiet checks", async () => {
  const failing = ends("Tests", "process.exitCode = 3");
  expect(await runBeside({ tests: failing, quiet: [tests], stop: neverStopped })).toBe(3);
  expect(printed).toBe("\n── Tests\n\n\n✗ Tests: failed.\n");
});

test("being told to stop is no failure of a check", async () => {
  expect(await runBeside({ tests, quiet: [tests], stop: AbortSignal.timeout(200) })).toBe(130);
  expect(printed).toBe("\n── Tests\n");
});
