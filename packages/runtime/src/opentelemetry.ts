import {
  type Context,
  diag,
  type Link,
  ROOT_CONTEXT,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import { parseTraceParent, setGlobalErrorHandler } from "@opentelemetry/core";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import {
  defaultResource,
  detectResources,
  type Resource,
  resourceAttributesEnvDetector,
  resourceFromAttributes,
  serviceNameEnvDetector,
} from "@opentelemetry/resources";
import { AlwaysOnSampler, BatchSpanProcessor, TracerProvider } from "@opentelemetry/sdk-trace";
import type { parseEnvironment, tracingVariables } from "./environment.ts";
import { describeError, type Logger } from "./logger.ts";
import { StartError } from "./start-error.ts";
import type { Span, SpanAttributes, SpanOptions, Tracing, TracingOptions } from "./tracing.ts";
import { version } from "./version.ts";
import { withDeadline } from "./with-deadline.ts";

/** Of one span. It is OpenTelemetry's own default. */
const maxLinks = 128;
/** The ids of partners come from Redis, where another program may have written longer ones. */
const maxAttributeLength = 256;
const reportIntervalMs = 60_000;

const spanKinds = {
  server: SpanKind.SERVER,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
  client: SpanKind.CLIENT,
};

/**
 * Starts OpenTelemetry's SDK, with nothing registered globally: no library of ours creates spans of its own, and no
 * context is tracked through asynchronous calls.
 *
 * @param options.ratio the share of traces to sample
 * @throws StartError
 */
export function startOpenTelemetry(
  options: TracingOptions & {
    settings: ReturnType<typeof parseEnvironment<typeof tracingVariables>>;
    ratio: number;
    flushLimitMs: number;
  },
): Tracing {
  const { serviceName, settings, ratio, flushLimitMs, logger } = options;
  const exporter = createExporter();
  const report = reportLosses(logger);
  const provider = new TracerProvider({
    resource: describeProcess(serviceName),
    // Whether a trace is sampled is decided before its first span is created.
    sampler: new AlwaysOnSampler(),
    spanLimits: { attributeValueLengthLimit: maxAttributeLength, linkCountLimit: maxLinks },
    spanProcessors: [
      new BatchSpanProcessor({
        exporter,
        scheduledDelayMillis: settings.OTEL_BSP_SCHEDULE_DELAY,
        exportTimeoutMillis: settings.OTEL_BSP_EXPORT_TIMEOUT,
        maxQueueSize: settings.OTEL_BSP_MAX_QUEUE_SIZE,
        maxExportBatchSize: Math.min(settings.OTEL_BSP_MAX_EXPORT_BATCH_SIZE, settings.OTEL_BSP_MAX_QUEUE_SIZE),
      }),
    ],
  });
  const tracer = provider.getTracer("booking-events", version);

  return {
    startTrace(name, { traceparent, ...spanOptions }) {
      // Not by the trace's id, which the caller chooses.
      if (Math.random() >= ratio) return undefined;
      return startSpan(tracer, name, spanOptions, toContext(traceparent));
    },
    startSpan: (name, { parent, links = [], ...spanOptions }) =>
      startSpan(tracer, name, spanOptions, toContext(parent), links.slice(0, maxLinks).flatMap(toLink)),
    async shutdown() {
      await withDeadline(provider.shutdown(), flushLimitMs).catch(report);
    },
  };
}

/**
 * The exporter reads its own variables, and with an invalid one it warns and uses the default.
 *
 * @throws StartError with the first warning
 */
function createExporter(): OTLPTraceExporter {
  const warnings: string[] = [];
  const collect = (message: string) => void warnings.push(message);
  setDiagnostics(collect);
  const exporter = new OTLPTraceExporter();
  if (warnings[0] !== undefined) throw new StartError(`OpenTelemetry is not configured correctly. ${warnings[0]}`);
  return exporter;
}

function setDiagnostics(warn: (message: string) => void): void {
  const ignore = () => {};
  diag.setLogger(
    { error: warn, warn, info: ignore, debug: ignore, verbose: ignore },
    { suppressOverrideMessage: true },
  );
}

/**
 * Logs that spans are lost, once a minute at most. Nothing else depends on the collector.
 *
 * @returns a function to call with each error
 */
function reportLosses(logger: Logger): (error: unknown) => void {
  let nextAtMs = Number.NEGATIVE_INFINITY;
  function report(fields: { reason?: string; code?: string }): void {
    if (performance.now() < nextAtMs) return;
    nextAtMs = performance.now() + reportIntervalMs;
    logger.warn(fields, "spans are lost: the collector is unreachable or slow, or refuses them");
  }

  const reportError = (error: unknown) => report({ code: codeOf(error) });
  // Texts of the SDK. It passes data apart from them.
  setDiagnostics((reason) => report({ reason }));
  setGlobalErrorHandler(reportError);
  return reportError;
}

/** Nothing is detected of the process or the host: command lines may hold passwords. */
function describeProcess(serviceName: string): Resource {
  const ofOperator = detectResources({ detectors: [resourceAttributesEnvDetector, serviceNameEnvDetector] });
  const ours = resourceFromAttributes({ "service.name": serviceName, "service.version": version });
  return defaultResource().merge(ours).merge(ofOperator);
}

/**
 * A caller's `tracestate` and `baggage` are not read, because they hold any text.
 *
 * @param traceparent anything else than a valid one counts as none
 */
function toContext(traceparent: string | string[] | undefined): Context {
  const parent = readTraceparent(traceparent);
  return parent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, parent);
}

function toLink(traceparent: string): Link[] {
  const context = readTraceparent(traceparent);
  return context === undefined ? [] : [{ context }];
}

function readTraceparent(traceparent: string | string[] | undefined): SpanContext | undefined {
  const context = typeof traceparent === "string" ? parseTraceParent(traceparent) : null;
  return context === null ? undefined : { ...context, isRemote: true };
}

function startSpan(
  tracer: Tracer,
  name: string,
  { kind, attributes = {} }: SpanOptions,
  context: Context,
  links: Link[] = [],
): Span {
  const span = tracer.startSpan(
    name,
    { kind: spanKinds[kind], attributes: withoutUndefined(attributes), links },
    context,
  );
  const { traceId, spanId } = span.spanContext();
  return {
    traceparent: `00-${traceId}-${spanId}-01`,
    startChild: (childName, options) => startSpan(tracer, childName, options, trace.setSpan(context, span)),
    setAttributes: (added) => void span.setAttributes(withoutUndefined(added)),
    fail(errorOrCode) {
      span.setAttribute("error.type", typeof errorOrCode === "string" ? errorOrCode : codeOf(errorOrCode));
      span.setStatus({ code: SpanStatusCode.ERROR });
    },
    end: () => span.end(),
  };
}

function codeOf(error: unknown): string {
  const { type, code = type } = describeError(error);
  return code;
}

function withoutUndefined(attributes: SpanAttributes): Record<string, string | number> {
  return Object.fromEntries(
    Object.entries(attributes).filter((entry): entry is [string, string | number] => entry[1] !== undefined),
  );
}
