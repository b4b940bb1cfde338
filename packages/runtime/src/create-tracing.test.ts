import { afterEach, describe, expect, test, vi } from "vitest";
import { createTracing } from "./create-tracing.ts";
import { createLogger } from "./logger.ts";
import { StartError } from "./start-error.ts";

const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9" };

function create(environment: Record<string, string>) {
  // OpenTelemetry's exporter reads the process's own environment.
  for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value);
  const logger = createLogger({ name: "test", level: "silent" });
  return createTracing({ serviceName: "test", environment, shutdownTimeoutMs: 1_000, logger });
}

afterEach(() => vi.unstubAllEnvs());

test.each([
  [{}, false],
  [endpoint, true],
  [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "https://127.0.0.1:9/v1/traces" }, true],
  [{ OTEL_TRACES_EXPORTER: "otlp" }, true],
  [{ ...endpoint, OTEL_TRACES_EXPORTER: "none" }, false],
  [{ ...endpoint, OTEL_SDK_DISABLED: "true" }, false],
  [{ ...endpoint, OTEL_SDK_DISABLED: "False" }, true],
  [{ ...endpoint, OTEL_TRACES_SAMPLER: "always_off" }, false],
  [{ ...endpoint, OTEL_TRACES_SAMPLER: "parentbased_always_off" }, false],
  [{ ...endpoint, OTEL_TRACES_SAMPLER: "traceidratio", OTEL_TRACES_SAMPLER_ARG: "0" }, false],
  [{ ...endpoint, OTEL_TRACES_SAMPLER: "traceidratio", OTEL_TRACES_SAMPLER_ARG: "0.5" }, true],
  [{ ...endpoint, OTEL_TRACES_SAMPLER: "" }, true],
  // Somebody may set this for all services of a cluster, also for those without traces.
  [{ OTEL_EXPORTER_OTLP_PROTOCOL: "grpc", OTEL_TRACES_SAMPLER: "xray" }, false],
])("with %j, traces are on: %j", async (environment, isOn) => {
  const tracing = await create(environment);
  expect(tracing !== undefined).toBe(isOn);
  await tracing?.shutdown();
});

describe("an invalid variable is refused in one sentence:", () => {
  test.each([
    ["OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318", "OTEL_EXPORTER_OTLP_ENDPOINT must be a URL"],
    ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT must be a URL"],
    ["OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf"],
    ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL must be http/protobuf"],
    ["OTEL_SDK_DISABLED", "1", "OTEL_SDK_DISABLED must be true or false"],
    ["OTEL_TRACES_EXPORTER", "zipkin", "OTEL_TRACES_EXPORTER must be otlp or none"],
    ["OTEL_TRACES_SAMPLER", "xray", "OTEL_TRACES_SAMPLER must be always_on"],
    ["OTEL_TRACES_SAMPLER_ARG", "50%", "OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1"],
    ["OTEL_TRACES_SAMPLER_ARG", "1.5", "OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1"],
    ["OTEL_BSP_MAX_QUEUE_SIZE", "100001", "OTEL_BSP_MAX_QUEUE_SIZE must be at most 100000"],
    ["OTEL_RESOURCE_ATTRIBUTES", "a=b,c", "OTEL_RESOURCE_ATTRIBUTES must be pairs"],
    // The exporter's own texts.
    ["OTEL_EXPORTER_OTLP_TIMEOUT", "soon", "for OTEL_EXPORTER_OTLP_TIMEOUT, expected a number"],
    ["OTEL_EXPORTER_OTLP_COMPRESSION", "zip", "OTEL_EXPORTER_OTLP_COMPRESSION is invalid"],
    ["OTEL_EXPORTER_OTLP_CERTIFICATE", "/no/such/file", "Failed to read root certificate file"],
  ])("%s=%s", async (name, value, sentence) => {
    const refused = create({ ...endpoint, [name]: value });
    await expect(refused).rejects.toThrow(sentence);
    await expect(refused).rejects.toBeInstanceOf(StartError);
  });
});

test("a caller's sampling flag and trace id have no influence on whether a trace is sampled", async () => {
  const tracing = await create({ ...endpoint, OTEL_TRACES_SAMPLER: "traceidratio", OTEL_TRACES_SAMPLER_ARG: "0.5" });
  // OpenTelemetry's own sampler would sample each of these traces, or none.
  const traceparent = `00-${"0".repeat(31)}1-00f067aa0ba902b7-00`;
  const draw = () => tracing?.startTrace("test", { kind: "server", traceparent });
  const spans = Array.from({ length: 200 }, draw);
  const sampled = spans.filter((span) => span !== undefined);
  expect(sampled.length).toBeGreaterThan(0);
  expect(sampled.length).toBeLessThan(spans.length);
  for (const span of sampled) expect(span.traceparent).toMatch(/^00-0{31}1-[0-9a-f]{16}-01$/);
  await tracing?.shutdown();
});
