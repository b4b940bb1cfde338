import type { IncomingHttpHeaders } from "node:http";

/** What a post came to. */
export type PostOutcome =
  /** The subscriber has taken it. */
  | { kind: "done"; status: number }
  /** The subscriber wants no more. */
  | { kind: "gone"; status: number }
  /** The subscriber wants nothing for so long. */
  | { kind: "wait"; status: number; pauseMs: number }
  /** `failure` names its class, such as `http-500`, `timeout` or `ECONNREFUSED`. `status` is null without an answer. */
  | { kind: "failed"; status: number | null; failure: string };

/** So that a subscriber that answers `Retry-After: 0` again and again is not asked in a loop. */
const shortestPauseMs = 1_000;
const longestPauseMs = 60 * 60 * 1_000;

/** @param nowMs our clock, used if the answer doesn't say by which clock it means a date */
export function judgeAnswer(status: number, headers: IncomingHttpHeaders, nowMs: number): PostOutcome {
  if (status >= 200 && status < 300) return { kind: "done", status };
  if (status === 410) return { kind: "gone", status };
  const pauseMs = status === 429 || status === 503 ? readRetryAfter(headers, nowMs) : undefined;
  return pauseMs === undefined
    ? { kind: "failed", status, failure: `http-${status}` }
    : { kind: "wait", status, pauseMs };
}

/** @returns undefined if the header is absent or is neither a number of seconds nor a date */
function readRetryAfter({ "retry-after": sent, date }: IncomingHttpHeaders, nowMs: number): number | undefined {
  if (sent === undefined) return undefined;
  const text = sent.trim();
  const pauseMs = /^\d+$/.test(text) ? Number(text) * 1_000 : readHttpDate(text) - toMs(date, nowMs);
  return Number.isNaN(pauseMs) ? undefined : Math.min(Math.max(pauseMs, shortestPauseMs), longestPauseMs);
}

function toMs(date: string | undefined, nowMs: number): number {
  const sentAtMs = readHttpDate(date ?? "");
  return Number.isNaN(sentAtMs) ? nowMs : sentAtMs;
}

/** The form that RFC 9110 lets senders write. `Date.parse` alone takes almost anything for a date. */
const httpDate = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

function readHttpDate(text: string): number {
  return httpDate.test(text) ? Date.parse(text) : Number.NaN;
}
