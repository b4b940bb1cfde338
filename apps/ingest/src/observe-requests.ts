import { isIP } from "node:net";
import { Counter, Histogram, type Logger, type Registry } from "@booking-events/service";
import type { Refusal } from "./answers.ts";

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
  /** Of a client whose secret was refused, to find the one who guesses. */
  ip?: string | undefined;
  /** Why the queue did not take the event. */
  cause?: string | undefined;
  /** An error that nobody expected. */
  err?: unknown;
}

export type ObserveRequest = (request: ObservedRequest) => void;

/** One line in the log and a count for each request. */
export function createRequestObserver(logger: Logger, metrics: Registry): ObserveRequest {
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

  return function observe({ method, kind, partner, eventId, status, outcome, durationMs, ip, cause, err }) {
    const label = String(status ?? "none");
    if (ip !== undefined) refusedSecrets.inc({ cause: outcome, status: label });
    requests.inc({ kind: kind ?? "none", status: label, partner: partner ?? "none" });
    if (durationMs !== undefined) durations.observe({ status: label }, durationMs / 1_000);
    logger[status === 500 ? "error" : "info"](
      {
        ...{ method, partner, eventId, status, outcome, cause, err },
        route: kind === undefined ? undefined : `/booking-event/${kind}/:secret`,
        // Behind fewer proxies than TRUSTED_PROXY_HOPS says, it is whatever the client wrote.
        ip: ip !== undefined && isIP(ip) !== 0 ? ip : undefined,
        durationMs: durationMs === undefined ? undefined : Math.round(durationMs * 10) / 10,
      },
      "request",
    );
  };
}
