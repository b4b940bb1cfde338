import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import {
  childrenOf,
  commandLine,
  isRunning,
  type ProcessRecord,
  readRecord,
  recordProcess,
  saveRecord,
  signalFamily,
  stopProcess,
} from "./process-record.ts";

const children: ChildProcess[] = [];

afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
});

test("a process runs until it has ended", async () => {
  const { child, record } = start("setInterval(() => {}, 1000)");
  expect(isRunning(record)).toBe(true);
  child.kill("SIGKILL");
  await once(child, "exit");
  expect(isRunning(record)).toBe(false);
});

test("another process with the same pid is not mistaken for the recorded one, and not stopped", async () => {
  const { child, record } = start("setInterval(() => {}, 1000)");
  const predecessor: ProcessRecord = { ...record, began: "at another time" };
  expect(isRunning(predecessor)).toBe(false);
  await stopProcess(predecessor, { signal: "SIGKILL", timeoutMs: 1_000 });
  expect(child.exitCode ?? child.signalCode).toBeNull();
});

test("a process that ignores the request to stop is killed when its time is up", async () => {
  const { child, record } = start("process.on('SIGTERM', () => {}); console.log(); setInterval(() => {}, 1000)");
  if (child.stdout) await once(child.stdout, "data");
  await stopProcess(record, { signal: "SIGTERM", timeoutMs: 100 });
  expect(isRunning(record)).toBe(false);
});

test("a frozen process can be stopped", async () => {
  const { record } = start("setInterval(() => {}, 1000)");
  signalFamily(record, "SIGSTOP");
  await stopProcess(record, { signal: "SIGTERM", timeoutMs: 10_000 });
  expect(isRunning(record)).toBe(false);
});

test("a record is kept in its file, and a copy of the file is no record", () => {
  const { record } = start("setInterval(() => {}, 1000)");
  const dir = mkdtempSync(join(tmpdir(), "process-record-"));
  saveRecord(join(dir, "record.json"), record.pid, { port: 1 });
  copyFileSync(join(dir, "record.json"), join(dir, "copy.json"));
  expect(readRecord(join(dir, "record.json"))).toMatchObject({ ...record, port: 1 });
  expect(readRecord(join(dir, "copy.json"))).toBeUndefined();
  expect(readRecord(join(dir, "missing.json"))).toBeUndefined();
  rmSync(dir, { recursive: true });
});

test("a signal reaches the process and its children", async () => {
  const { child, record } = start("require('child_process').spawn('sleep', ['60']).on('spawn', () => console.log())");
  if (child.stdout) await once(child.stdout, "data");
  const [grandchild = 0] = childrenOf(record.pid);
  expect(commandLine(grandchild)).toContain("sleep");
  signalFamily(record, "SIGKILL");
  await vi.waitFor(() => expect(recordProcess(grandchild)).toBeUndefined());
});

test("a command line can be read", () => {
  expect(commandLine(start("'a marker'").record.pid)).toContain("a marker");
});

function start(code: string): { child: ChildProcess; record: ProcessRecord } {
  const child = spawn(process.execPath, ["-e", code], { stdio: ["ignore", "pipe", "ignore"] });
  children.push(child);
  const record = child.pid === undefined ? undefined : recordProcess(child.pid);
  if (!record) throw new Error("the child did not start");
  return { child, record };
}
