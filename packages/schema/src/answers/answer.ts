import type { RefusalBody } from "./answer-bodies.ts";

export interface Answer {
  status: number;
  /** JSON. */
  body: string;
  /** Names the answer: in the body of a refusal, in the log, and for operators. A code never changes its meaning. */
  code: string;
  headers?: Readonly<Record<string, string>>;
}

export function refused(status: number, code: string, message: string, headers?: Record<string, string>): Answer {
  const answer = { status, code, body: JSON.stringify({ message, code } satisfies RefusalBody) };
  return headers === undefined ? answer : { ...answer, headers };
}

/** The same request can succeed later. */
export function refusedForNow(status: 429 | 503, code: string, retryAfterS: number, message: string): Answer {
  return refused(status, code, `${message} Retry the same request after the delay in Retry-After.`, {
    "Retry-After": String(retryAfterS),
  });
}
