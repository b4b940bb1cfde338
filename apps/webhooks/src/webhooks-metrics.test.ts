import type { DeliveryEvent } from "@booking-events/feed";
import { createMetrics, type Registry } from "@booking-events/runtime";
import { beforeEach, expect, test } from "vitest";
import { WebhooksMetrics } from "./webhooks-metrics.ts";

let registry: Registry;
let metrics: WebhooksMetrics;

beforeEach(() => {
  registry = createMetrics("test");
  metrics = new WebhooksMetrics(registry, () => 3);
});

type Attempt = DeliveryEvent & { type: "attempt" };

function attempt(outcome: Attempt["outcome"], failure: string | null = null, name = "hotel"): void {
  metrics.observeDelivery({
    type: "attempt",
    name,
    outcome,
    failure,
    durationMs: 20,
    sinceChangeMs: 70,
  });
}

async function seriesOf(name: string): Promise<string[]> {
  const lines = (await registry.metrics()).split("\n").filter((line) => line.startsWith(`${name}{`));
  return lines.map((line) => line.slice(name.length).replace(/process="test",|,?process="test"/, ""));
}

test("posts are counted by the class of their answer, so that no subscriber makes many series", async () => {
  attempt("done");
  attempt("failed", "http-500");
  attempt("failed", "http-503");
  attempt("failed", "http-301");
  attempt("failed", "timeout");
  attempt("failed", "private-address");
  attempt("failed", "ECONNREFUSED");
  attempt("failed", "HPE_INVALID_CONSTANT");
  attempt("timeout", "timeout");
  attempt("retry-after");
  attempt("stopped");
  attempt("interrupted");
  expect(await seriesOf("webhooks_attempts_total")).toEqual(
    [
      ...['answer="2xx"} 1', 'answer="5xx"} 2', 'answer="3xx"} 1', 'answer="timeout"} 2'],
      ...['answer="private-address"} 1', 'answer="no-answer"} 2', 'answer="retry-after"} 1'],
      ...['answer="410"} 1', 'answer="interrupted"} 1'],
    ].map((series) => `{subscription="hotel",${series}`),
  );
  expect(await seriesOf("webhooks_delivery_delay_seconds_sum")).toEqual(["{} 0.07"]);
});

test("subscriptions beyond a number share a series", async () => {
  for (let number = 0; number < 1_002; number += 1) attempt("done", null, `hotel-${number}`);
  const series = await seriesOf("webhooks_attempts_total");
  expect(series).toHaveLength(1_001);
  expect(series.at(-1)).toBe('{subscription="other",answer="2xx"} 2');
});

test("the state of a subscription is shown while this process has it", async () => {
  const name = "hotel";
  metrics.observeDelivery({ type: "active", name });
  metrics.observeDelivery({ type: "breaker-opened", name });
  expect(await seriesOf("webhooks_delivering")).toEqual(['{subscription="hotel"} 1']);
  expect(await seriesOf("webhooks_breaker_open")).toEqual(['{subscription="hotel"} 1']);
  metrics.observeDelivery({ type: "breaker-closed", name });
  metrics.observeDelivery({ type: "standby", name });
  expect(await seriesOf("webhooks_delivering")).toEqual(['{subscription="hotel"} 0']);
  expect(await seriesOf("webhooks_breaker_open")).toEqual(['{subscription="hotel"} 0']);
  metrics.forget(name);
  expect(await seriesOf("webhooks_delivering")).toEqual([]);
  expect(await seriesOf("webhooks_breaker_open")).toEqual([]);
});

test("parked and dead deliveries, subscriptions and requests to pull are counted", async () => {
  const event = { name: "hotel", bookingId: "0", changeId: 7, failure: "http-500" };
  metrics.observeDelivery({ ...event, type: "parked" });
  metrics.observeDelivery({ ...event, type: "died" });
  metrics.observePull({ path: "changes", status: 200, durationMs: 30_000 });
  expect(await seriesOf("webhooks_parked_total")).toEqual(['{subscription="hotel"} 1']);
  expect(await seriesOf("webhooks_dead_letters_total")).toEqual(['{subscription="hotel"} 1']);
  expect(await seriesOf("webhooks_subscriptions")).toEqual(["{} 3"]);
  expect(await seriesOf("webhooks_pull_requests_total")).toEqual(['{path="changes",status="200"} 1']);
  expect(await seriesOf("webhooks_pull_duration_seconds_sum")).toEqual(['{path="changes"} 30']);
});
