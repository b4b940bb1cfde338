import type { DeliveryEvent } from "@booking-events/feed";
import { Counter, Gauge, Histogram, type Registry } from "@booking-events/runtime";

/** Operators name subscriptions. The names beyond this many share a series. */
const maxSubscriptions = 1_000;

type Attempt = DeliveryEvent & { type: "attempt" };

export interface PullRequest {
  path: "changes" | "snapshot" | "other";
  status: number;
  durationMs: number;
}

/** Counts what happens to deliveries, and the requests of those who pull. */
export class WebhooksMetrics {
  readonly #metrics: ReturnType<typeof defineMetrics>;
  readonly #names = new Set<string>();

  /** @param readActive how many subscriptions are delivered to by this process or could be */
  constructor(registry: Registry, readActive: () => number) {
    this.#metrics = defineMetrics([registry]);
    new Gauge({
      name: "webhooks_subscriptions",
      help: "Active subscriptions that are posted to, as this process knows them.",
      registers: [registry],
      collect() {
        this.set(readActive());
      },
    });
  }

  observeDelivery(event: DeliveryEvent): void {
    const subscription = this.#toLabel(event.name);
    const { breakers, delivering, parked, dead } = this.#metrics;
    switch (event.type) {
      case "attempt":
        this.#observeAttempt(subscription, event);
        break;
      case "parked":
        parked.inc({ subscription });
        break;
      case "died":
        dead.inc({ subscription });
        break;
      case "breaker-opened":
      case "breaker-closed":
        breakers.set({ subscription }, event.type === "breaker-opened" ? 1 : 0);
        break;
      case "active":
      case "standby":
        delivering.set({ subscription }, event.type === "active" ? 1 : 0);
    }
  }

  /** Forgets the state of a subscription that this process no longer delivers to. */
  forget(name: string): void {
    const subscription = this.#toLabel(name);
    for (const gauge of [this.#metrics.breakers, this.#metrics.delivering]) gauge.remove({ subscription });
  }

  observePull({ path, status, durationMs }: PullRequest): void {
    this.#metrics.pulls.inc({ path, status });
    this.#metrics.pullDurations.observe({ path }, durationMs / 1_000);
  }

  #observeAttempt(subscription: string, { outcome, failure, durationMs, sinceChangeMs }: Attempt): void {
    const { attempts, durations, delays } = this.#metrics;
    attempts.inc({ subscription, answer: classifyAnswer(outcome, failure) });
    durations.observe(durationMs / 1_000);
    if (outcome === "done") delays.observe(Math.max(0, sinceChangeMs) / 1_000);
  }

  #toLabel(name: string): string {
    if (this.#names.size >= maxSubscriptions && !this.#names.has(name)) return "other";
    this.#names.add(name);
    return name;
  }
}

function classifyAnswer(outcome: Attempt["outcome"], failure: string | null): string {
  if (outcome !== "failed") return { done: "2xx", stopped: "410" }[outcome as string] ?? outcome;
  const [, hundreds] = /^http-(\d)\d\d$/.exec(failure ?? "") ?? [];
  if (hundreds !== undefined) return `${hundreds}xx`;
  return failure === "timeout" || failure === "private-address" ? failure : "no-answer";
}

function defineMetrics(registers: Registry[]) {
  return {
    attempts: new Counter({
      name: "webhooks_attempts_total",
      help: "Posts, by subscription and by class of answer: 2xx, 3xx, 4xx, 5xx, 410, retry-after, timeout, no-answer, private-address, interrupted.",
      labelNames: ["subscription", "answer"],
      registers,
    }),
    durations: new Histogram({
      name: "webhooks_attempt_duration_seconds",
      help: "How long a post took, until its answer or its failure.",
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15],
      registers,
    }),
    delays: new Histogram({
      name: "webhooks_delivery_delay_seconds",
      help: "Time from the beginning of the transaction that changed a booking until a subscriber had taken the change.",
      buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 7_200, 86_400],
      registers,
    }),
    parked: new Counter({
      name: "webhooks_parked_total",
      help: "Deliveries that failed and wait for their next attempt, by subscription.",
      labelNames: ["subscription"],
      registers,
    }),
    dead: new Counter({
      name: "webhooks_dead_letters_total",
      help: "Deliveries whose attempts were used up, by subscription.",
      labelNames: ["subscription"],
      registers,
    }),
    breakers: new Gauge({
      name: "webhooks_breaker_open",
      help: "1 while a subscription gets one probing post at a time, since its posts failed one after another.",
      labelNames: ["subscription"],
      registers,
    }),
    delivering: new Gauge({
      name: "webhooks_delivering",
      help: "1 if this process delivers to the subscription; 0 if another one does.",
      labelNames: ["subscription"],
      registers,
    }),
    pulls: new Counter({
      name: "webhooks_pull_requests_total",
      help: "Requests of those who pull, by path and status.",
      labelNames: ["path", "status"],
      registers,
    }),
    pullDurations: new Histogram({
      name: "webhooks_pull_duration_seconds",
      help: "How long such a request took, with the time that it waited for changes.",
      labelNames: ["path"],
      buckets: [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 20, 30, 60, 300],
      registers,
    }),
  };
}
