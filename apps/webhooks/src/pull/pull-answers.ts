/** What a request that gets no changes is answered. None of these holds a token or a value. */
export interface PullAnswer {
  status: number;
  /** Stable, for programs. */
  code: string;
  message: string;
  headers?: Record<string, string>;
}

/** Thrown to end a request with an answer. */
export class PullRefused extends Error {
  override name = "PullRefused";
  readonly answer: PullAnswer;

  constructor(answer: PullAnswer, options?: ErrorOptions) {
    super(answer.code, options);
    this.answer = answer;
  }
}

export const noSuchPath: PullAnswer = {
  status: 404,
  code: "no-such-path",
  message: "No such path. Use /changes?after=0 or /changes/snapshot.",
};
export const wrongMethod: PullAnswer = {
  status: 405,
  code: "wrong-method",
  message: "Use GET.",
  headers: { Allow: "GET" },
};
/** The same bytes for every cause. */
export const invalidToken: PullAnswer = {
  status: 401,
  code: "invalid-token",
  message: "Invalid token. Send the token of your subscription: Authorization: Bearer <token>.",
  headers: { "WWW-Authenticate": "Bearer" },
};
export const paused: PullAnswer = {
  status: 403,
  code: "paused",
  message: "Your subscription is paused. Ask the operator of the service.",
};
export const invalidQuery = (message: string): PullAnswer => ({ status: 400, code: "invalid-query", message });
export const changesMissing = (after: number): PullAnswer => ({
  status: 410,
  code: "gap",
  message:
    `Changes after ${after} are missing: they were too old, or the feed was restored to an earlier state. Delete what ` +
    "you keep, and start over from /changes/snapshot.",
});
export const tooManyRequests: PullAnswer = {
  status: 429,
  code: "too-many-requests",
  message: "Too many requests with this token are under way. Send one after the other.",
  headers: { "Retry-After": "1" },
};
export const tooManySnapshots: PullAnswer = {
  status: 429,
  code: "too-many-snapshots",
  message: "Too many snapshots are under way. Retry after the delay in the Retry-After header.",
  headers: { "Retry-After": "30" },
};
export const tooManyWaiting: PullAnswer = {
  status: 503,
  code: "too-many-waiting",
  message: "Too many requests wait for changes. Retry after the delay in the Retry-After header.",
  headers: { "Retry-After": "5" },
};
export const unavailable: PullAnswer = {
  status: 503,
  code: "unavailable",
  message: "The changes cannot be read at the moment. Retry after the delay in the Retry-After header.",
  headers: { "Retry-After": "5" },
};
export const internalError: PullAnswer = {
  status: 500,
  code: "internal-error",
  message: "An unexpected error occurred. It has been logged.",
};
