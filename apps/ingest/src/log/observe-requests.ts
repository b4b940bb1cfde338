import { isIP } from "node:net";
import { Counter, Histogram, type Logger, type Registry } from "@booking-events/runtime";
import type { Refusal } from "../http/answers.ts";
import { createRefusalCounter, type RefusalCounter } from "./count-refusals.ts";

/** What may be said of a request. Never its URL, which holds the secret, nor anything of its body. */
export interface ObservedRequest {
  method?: string | undefined;
  /** Of the route that the path matched. */
  kind?: string | undefined;
  /** Only of a request that came with one of the partner's secrets. */
  partner?: string | undefined;
  eventId?: string | undefined;
  /** undefined: the client went away before there was an answer. */
  status?: number | undefined;
  outcome: Refusal["outcome"];
  durationMs?: number | undefined;
  /** Of a client that was refused before it showed a valid secret: who guesses, or floods? */
  ip?: string | undefined;
  /** Whether it was for its secret. */
  isSecretRefused?: boolean | undefined;
  /** Why the queue did not take the event. */
  cause?: string | undefined;
  /** An error that nobody expected. */
  err?: unknown;
}

export type ObserveRequest = (request: ObservedRequest) => void;

/**
 * A count for each request, and a line in the log for each that is accepted. Of refusals that repeat each other the log
 * has one line a second.
 */
export function createRequestObserver(
  logger: Logger,
  metrics: Registry,
): { observe: ObserveRequest; flush: RefusalCounter["flush"] } {
  const refusals = createRefusalCounter(logger);
  const requests = new Counter({
    name: "ingest_requests_total",
    help: "Requests by kind, status and, once authenticated, partner. Status none: the client went away.",
    labelNames: ["kind", "status", "partner"],
    registers: [metrics],
  });
  const durations = new Histogram({
    name: "ingest_request_duration_seconds",
    help: "Time from a request's headers to its answer, the reading of its body included.",
    labelNames: ["status"],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10],
    registers: [metrics],
  });

  const refusedSecrets = new Counter({
    name: "ingest_refused_secrets_total",
    help: "Requests whose secret was refused, by cause and status. Status 429: their address is throttled.",
    labelNames: ["cause", "status"],
    registers: [metrics],
  });

  function observe(request: ObservedRequest): void {
    const { method, kind, partner, eventId, status, outcome, durationMs, isSecretRefused, cause, err } = request;
    const label = String(status ?? "none");
    if (isSecretRefused) refusedSecrets.inc({ cause: outcome, status: label });
    requests.inc({ kind: kind ?? "none", status: label, partner: partner ?? "none" });
    if (durationMs !== undefined) durations.observe({ status: label }, durationMs / 1_000);
    // Behind fewer proxies than TRUSTED_PROXY_HOPS says, it is whatever the client wrote.
    const ip = request.ip !== undefined && isIP(request.ip) !== 0 ? request.ip : undefined;
    if (status !== 200 && refusals.countRepeat({ ...request, ip })) return;
    logger[status === 500 ? "error" : "info"](
      {
        ...{ method, partner, eventId, status, outcome, cause, err, ip },
        route: kind === undefined ? undefined : `/booking-event/${kind}/:secret`,
        durationMs: durationMs === undefined ? undefined : Math.round(durationMs * 10) / 10,
      },
      "request",
    );
  }

  return { observe, flush: refusals.flush };
}
