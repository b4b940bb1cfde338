import { expect, test } from "vitest";
import { judgeAnswer } from "./judge-answer.ts";

const now = Date.parse("2026-11-26T07:00:00Z");
const hourMs = 3_600_000;
const judge = (status: number, headers = {}) => judgeAnswer(status, headers, now);

test.each([200, 201, 202, 204, 299])("%i is taken", (status) => {
  expect(judge(status)).toEqual({ kind: "done", status });
});

test.each([199, 301, 302, 307, 308, 400, 401, 404, 408, 409, 429, 500, 502, 503, 999])("%i has failed", (status) => {
  expect(judge(status)).toEqual({ kind: "failed", status, failure: `http-${status}` });
});

test("410 ends it", () => {
  expect(judge(410)).toEqual({ kind: "gone", status: 410 });
});

test.each([429, 503])("%i with Retry-After waits, for an hour at most and a second at least", (status) => {
  const pauseOf = (headers: Record<string, string>) => {
    const outcome = judge(status, headers);
    return outcome.kind === "wait" ? outcome.pauseMs : outcome.kind;
  };
  expect(pauseOf({ "retry-after": "120" })).toBe(120_000);
  expect(pauseOf({ "retry-after": " 120 " })).toBe(120_000);
  expect(pauseOf({ "retry-after": "0" })).toBe(1_000);
  expect(pauseOf({ "retry-after": "99999999999999999999" })).toBe(hourMs);
  expect(pauseOf({ "retry-after": "Thu, 26 Nov 2026 07:02:00 GMT" })).toBe(120_000);
  expect(pauseOf({ "retry-after": "Thu, 26 Nov 2026 06:00:00 GMT" })).toBe(1_000);
  expect(pauseOf({ "retry-after": "Fri, 27 Nov 2026 07:00:00 GMT" })).toBe(hourMs);
});

test("a date is meant by the clock of the server that sent it", () => {
  const headers = { "retry-after": "Thu, 26 Nov 2026 09:00:30 GMT", date: "Thu, 26 Nov 2026 09:00:00 GMT" };
  expect(judge(503, headers)).toEqual({ kind: "wait", status: 503, pauseMs: 30_000 });
});

test.each(["", "soon", "-5", "1.5", "2026-11-26T07:02:00Z", "1e3"])("Retry-After %j is none", (text) => {
  expect(judge(429, { "retry-after": text })).toEqual({ kind: "failed", status: 429, failure: "http-429" });
});

test("Retry-After of another status is none", () => {
  expect(judge(500, { "retry-after": "5" })).toMatchObject({ kind: "failed" });
});
