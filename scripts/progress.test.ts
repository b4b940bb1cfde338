import { expect, test } from "vitest";
import { attentionLine } from "./progress.ts";

test("of an app's log only warnings and errors are shown, formatted for people", () => {
  const entry = { time: "2026-11-20T22:10:11.123Z", name: "worker", pid: 1, msg: "the queue is full", waiting: 3 };
  expect(attentionLine("worker", JSON.stringify({ level: "info", ...entry }))).toBeUndefined();
  expect(attentionLine("worker", JSON.stringify({ level: "warn", ...entry }))).toBe(
    "[worker] 22:10:11 warn the queue is full waiting=3",
  );
});

test("an error is shown by its type, code and message, without its stack", () => {
  const err = { type: "Error", code: "ECONNREFUSED", message: "connect", stack: "    at somewhere" };
  expect(attentionLine("ingest", JSON.stringify({ level: "error", msg: "no Redis", err }))).toBe(
    "[ingest] error no Redis (Error ECONNREFUSED connect)",
  );
});

test("what is not a log line, such as a crash of Node, is shown as it is", () => {
  expect(attentionLine("ingest", "SyntaxError: Unexpected token")).toBe("[ingest] SyntaxError: Unexpected token");
  expect(attentionLine("ingest", "  ")).toBeUndefined();
  expect(attentionLine("ingest", "null")).toBe("[ingest] null");
});
