import { Writable } from "node:stream";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Output } from "../../context.ts";
import { createProgress } from "./progress.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }));
afterEach(() => void vi.useRealTimers());

const shortage = { reason: "Redis uses 62 % of its maxmemory", advice: "Raise it." };

/** @returns what is printed while the import waits for 20 s */
function waitFor20Seconds(terminal: { isTTY?: true }): string {
  let printed = "";
  const stderr: Output = Object.assign(
    new Writable({
      write(chunk, _encoding, done) {
        printed += chunk;
        done();
      },
    }),
    terminal,
  );
  const progress = createProgress({ stderr });
  for (let second = 0; second < 20; second += 1) {
    progress.wait(shortage);
    vi.advanceTimersByTime(1_000);
  }
  return printed;
}

test("a long wait is reported once, with its reason and what to do", () => {
  expect(waitFor20Seconds({})).toBe("Waiting, since Redis uses 62 % of its maxmemory. Raise it.\n");
});

test("a terminal shows the reason at once", () => {
  expect(waitFor20Seconds({ isTTY: true })).toContain("0 rejected, waiting: Redis uses 62 % of its maxmemory");
});
