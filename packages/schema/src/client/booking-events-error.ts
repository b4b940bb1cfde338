import type { Violation } from "../payload/violation.ts";

/** Reasons that the client finds itself. All other codes are the service's. */
type ClientCode =
  /** No answer arrived: the host cannot be reached, or the connection broke. */
  | "network-error"
  /** No complete answer arrived in time. */
  | "timeout"
  /** The caller's signal was aborted. */
  | "aborted"
  /** The server redirects. The client does not follow because the secret would go to another address. */
  | "redirected"
  /** Something else than the service answered, such as a proxy. */
  | "unexpected-answer"
  /** The payload violates rules. `status` is undefined if the client's own check found it. */
  | "invalid-data";

export interface ErrorDetails {
  code: ClientCode | (string & {});
  status?: number | undefined;
  requestId?: string | undefined;
  violationList?: readonly Violation[] | undefined;
  retryable: boolean;
  retryAfterMs?: number | undefined;
  attempts: number;
  idempotencyKey?: string | undefined;
}

/** The event was not accepted, or no answer said that it was; or a question was not answered. Contains neither the secret nor the payload. */
export class BookingEventsError extends Error {
  override name = "BookingEventsError";
  /** The reason. A code never changes its meaning, but later releases may add codes. */
  readonly code: ErrorDetails["code"];
  /** The status of the last answer. */
  readonly status: number | undefined;
  /** Names the last request. Quote it when you ask for support. */
  readonly requestId: string | undefined;
  /** The violated rules, if the code is `invalid-data`; the wrong lines of a list, if it is `invalid-list-line`. */
  readonly violationList: readonly Violation[];
  /**
   * If true, the same event may be accepted later, or may have been accepted already. Send it again with the same
   * `idempotencyKey`. If false, sending it again unchanged cannot help.
   */
  readonly retryable: boolean;
  /** How long the service asked to wait, in milliseconds. */
  readonly retryAfterMs: number | undefined;
  /** The requests that were sent. */
  readonly attempts: number;
  /** Of the event. Undefined if it was a question. */
  readonly idempotencyKey: string | undefined;

  constructor(message: string, details: ErrorDetails) {
    super(message);
    this.code = details.code;
    this.status = details.status;
    this.requestId = details.requestId;
    this.violationList = details.violationList ?? [];
    this.retryable = details.retryable;
    this.retryAfterMs = details.retryAfterMs;
    this.attempts = details.attempts;
    this.idempotencyKey = details.idempotencyKey;
  }
}
