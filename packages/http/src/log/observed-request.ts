import type { FieldViolation, Refusal } from "../answers/refusal.ts";

/** What may be logged about a request. Never its URL, which contains the secret, or any part of its body. */
export interface ObservedRequest {
  /** The `X-Request-Id` of the answer. */
  requestId: string;
  method?: string | undefined;
  /** The kind in the path, if a route matches it. */
  kind?: string | undefined;
  /** Only for a request with a valid or known secret. */
  partner?: string | undefined;
  secretId?: string | undefined;
  eventId?: string | undefined;
  /** undefined if the client disconnected before it was answered. */
  status?: number | undefined;
  outcome: Refusal["outcome"];
  durationMs?: number | undefined;
  /** The address of a client that was refused. */
  ip?: string | undefined;
  /** `ip` is that of the nearest proxy, because it passed on none. */
  isAddressUnreadable?: boolean | undefined;
  isSecretRefused?: boolean | undefined;
  violations?: FieldViolation[] | undefined;
  /** Of a refused event: {@link Refusal.subject}. Not logged. */
  subject?: string | undefined;
  /** Of a batch: how many of its lines got each status. */
  lines?: Record<string, number> | undefined;
  /** Why the event could not be queued. */
  cause?: string | undefined;
  err?: unknown;
}

export type ObserveRequest = (request: ObservedRequest) => void;
