import type { Partner } from "@booking-events/partners";
import { Counter, createTallies, Histogram, type Logger, type Registry } from "@booking-events/runtime";
import { answers } from "@booking-events/schema";
import { createRefusalCounter, type RefusalCounter } from "./count-refusals.ts";
import type { ObservedRequest } from "./observed-request.ts";

/** Counts each request and logs each accepted one. Repeated refusals share one log line a second. */
export class RequestObserver {
  readonly #logger: Logger;
  readonly #refusals: RefusalCounter;
  readonly #acceptedLoggers = new Map<string, Logger>();
  readonly #requests: ReturnType<typeof createTallies>;
  readonly #durations: Histogram;
  readonly #refusedSecrets: Counter;
  readonly #unreadableAddresses: Counter;

  /** @param app the prefix of the metrics' names */
  constructor(app: string, logger: Logger, metrics: Registry) {
    this.#logger = logger;
    this.#refusals = createRefusalCounter(logger);
    this.#requests = createTallies({
      name: `${app}_requests_total`,
      help:
        "Requests by kind, status and, if authenticated, partner. Status none means that the client disconnected, and " +
        "held that the partner is on hold.",
      labelNames: ["kind", "status", "partner"],
      registers: [metrics],
    });
    this.#durations = new Histogram({
      name: `${app}_request_duration_seconds`,
      help: "Time from a request's headers to its answer, including reading its body.",
      labelNames: ["status"],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10],
      registers: [metrics],
    });
    this.#refusedSecrets = new Counter({
      name: `${app}_refused_secrets_total`,
      help: "Requests whose secret was refused, by cause and status. Status 429 means that their address is throttled.",
      labelNames: ["cause", "status"],
      registers: [metrics],
    });
    this.#unreadableAddresses = new Counter({
      name: `${app}_unreadable_addresses_total`,
      help: "Refused requests that count as their proxy's, because what it wrote into X-Forwarded-For is no address.",
      registers: [metrics],
    });
  }

  /**
   * Exports what is expected of the partners as 0 until it happens. Otherwise Prometheus does not count the first event
   * after each start, and a partner that sends little would look silent.
   */
  expectPartners(partners: readonly Partner[]): void {
    for (const { id, enabled, kinds } of partners) {
      if (enabled) for (const kind of kinds) this.#requests(kind, "200", id);
    }
  }

  observe(request: ObservedRequest): void {
    this.#count(request);
    const { outcome, status, durationMs, eventId } = request;
    if (status !== 200 && this.#refusals.countRepeat(request)) return;
    const roundedMs = durationMs === undefined ? undefined : Math.round(durationMs * 10) / 10;
    if (outcome === "accepted") {
      // The event's id is the request's.
      this.#acceptedLoggerOf(request).info({ eventId, durationMs: roundedMs }, "request");
    } else {
      this.#logger[status === 500 ? "error" : "info"](describe({ ...request, durationMs: roundedMs }), "request");
    }
  }

  flush(): void {
    this.#refusals.flush();
  }

  #count(request: ObservedRequest): void {
    const { kind, partner, status, outcome, durationMs, lines, isSecretRefused, isAddressUnreadable } = request;
    // What an operator has decided is no failure of ours: it does not count as a 503.
    const label = outcome === answers.partnerHeld.code ? "held" : String(status ?? "none");
    if (isSecretRefused) this.#refusedSecrets.inc({ cause: outcome, status: label });
    if (isAddressUnreadable) this.#unreadableAddresses.inc();
    this.#requests(kind ?? "none", label, partner ?? "none").count += 1;
    // How long a batch takes is up to its length.
    if (durationMs !== undefined && lines === undefined) this.#durations.observe({ status: label }, durationMs / 1_000);
  }

  /** Its lines have in common what accepted events of the partner and kind do: pino writes it as JSON only once. */
  #acceptedLoggerOf({ method, kind = "none", partner = "none", status, outcome }: ObservedRequest): Logger {
    const key = `${kind} ${partner}`;
    const known = this.#acceptedLoggers.get(key);
    if (known !== undefined) return known;
    const created = this.#logger.child({ method, partner, status, outcome, route: routeOf(kind) });
    this.#acceptedLoggers.set(key, created);
    return created;
  }
}

function describe({ kind, violations = [], isSecretRefused: _, subject: __, ...fields }: ObservedRequest): object {
  return {
    ...fields,
    violations: violations.length === 0 ? undefined : violations.map(({ field, rule }) => `${field}:${rule}`),
    route: kind === undefined ? undefined : routeOf(kind),
  };
}

function routeOf(kind: string): string {
  return `/booking-event/${kind}/:secret`;
}
