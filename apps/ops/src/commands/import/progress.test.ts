import { Writable } from "node:stream";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createProgress } from "./progress.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }));
afterEach(() => void vi.useRealTimers());

test("every ten seconds, a line says how far the import is, and why it waits and what to do", () => {
  const printed: string[] = [];
  const stderr = new Writable({
    write(chunk, _encoding, done) {
      printed.push(String(chunk));
      done();
    },
  });
  const progress = createProgress({ stderr });
  for (let second = 0; second < 15; second += 1) {
    progress.count("lines", 200);
    vi.advanceTimersByTime(1_000);
  }
  progress.count("rejected");
  for (let second = 0; second < 10; second += 1) {
    progress.wait({ reason: "Redis uses 62 % of its maxmemory", advice: "Raise it." });
    vi.advanceTimersByTime(1_000);
  }
  expect(printed).toEqual([
    "2200 lines, 220/s, 0 rejected.\n",
    "3000 lines, 150/s, 1 rejected. Waiting, since Redis uses 62 % of its maxmemory. Raise it.\n",
  ]);
});
