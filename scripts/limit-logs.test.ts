import {
  appendFileSync,
  closeSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { limitLogs } from "./limit-logs.ts";

let dir: string;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "logs-"));
});
afterEach(() => rmSync(dir, { recursive: true }));

const read = (name: string) => readFileSync(join(dir, name), "utf8");

test("a log keeps its last lines in two files of bounded size, while another program goes on writing to it", () => {
  const maxBytes = 100;
  const log = openSync(join(dir, "a.log"), "a");
  const line = (number: number) => `line ${String(number).padStart(4, "0")}\n`;
  for (let number = 0; number < 200; number += 1) {
    writeSync(log, line(number));
    limitLogs(dir, maxBytes);
  }
  closeSync(log);
  expect(readdirSync(dir).toSorted()).toEqual(["a.log", "a.log.1"]);
  const kept = read("a.log.1") + read("a.log");
  expect(kept.length).toBeGreaterThan(maxBytes);
  expect(kept.length).toBeLessThan(2 * (maxBytes + line(0).length));
  const count = kept.length / line(0).length;
  expect(kept).toBe(Array.from({ length: count }, (_, index) => line(200 - count + index)).join(""));
});

test("a log within its limit, and a file that is not a log, stay as they are", () => {
  appendFileSync(join(dir, "a.log"), "x".repeat(100));
  appendFileSync(join(dir, "a.txt"), "x".repeat(200));
  limitLogs(dir, 100);
  expect(readdirSync(dir).toSorted()).toEqual(["a.log", "a.txt"]);
});
