import {
  type Context,
  diag,
  type Link,
  type Span as OpenTelemetrySpan,
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

interface SpanOptions {
  kind: keyof typeof spanKinds;
  attributes?: SpanAttributes;
}

/** None of the values may come from a payload, a header or a URL. Those that are undefined are left out. */
type SpanAttributes = Record<string, string | number | undefined>;

/**
 * Exports what a process does as spans of OpenTelemetry. Nothing is registered globally: no library of ours creates spans
 * of its own, and no context is tracked through asynchronous calls.
 */
export class Tracing {
  readonly #provider: TracerProvider;
  readonly #tracer: Tracer;
  readonly #ratio: number;
  readonly #flushLimitMs: number;
  readonly #reportLoss: (error: unknown) => void;

  /**
   * @param options.ratio the share of traces to sample
   * @throws StartError
   */
  constructor(options: {
    serviceName: string;
    settings: ReturnType<typeof parseEnvironment<typeof tracingVariables>>;
    ratio: number;
    flushLimitMs: number;
    logger: Logger;
  }) {
    const { serviceName, settings, ratio, flushLimitMs, logger } = options;
    const exporter = createExporter();
    this.#ratio = ratio;
    this.#flushLimitMs = flushLimitMs;
    this.#reportLoss = reportLosses(logger);
    this.#provider = new TracerProvider({
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
    this.#tracer = this.#provider.getTracer("booking-events", version);
  }

  /**
   * Begins the first span of a trace in our processes, or returns undefined if the trace is not sampled.
   *
   * @param options.traceparent the caller's header. Only its ids are used: the caller's sampling flag is ignored. If it
   *   is malformed, a new trace begins
   */
  startTrace(
    name: string,
    { traceparent, ...options }: SpanOptions & { traceparent: string | string[] | undefined },
  ): Span | undefined {
    // Not by the trace's id, which the caller chooses.
    if (Math.random() >= this.#ratio) return undefined;
    return new Span(this.#tracer, toContext(traceparent), name, options);
  }

  /**
   * Begins a span that belongs to traces that are sampled.
   *
   * @param options.parent the traceparent of a span. Default: a new trace begins
   * @param options.links the traceparents of other spans, of which the first {@link maxLinks} are exported
   */
  startSpan(
    name: string,
    { parent, links = [], ...options }: SpanOptions & { parent?: string; links?: readonly string[] },
  ): Span {
    return new Span(this.#tracer, toContext(parent), name, options, links.slice(0, maxLinks).flatMap(toLink));
  }

  /** Exports the spans that have ended, within a limited time. Never throws. */
  async shutdown(): Promise<void> {
    await withDeadline(this.#provider.shutdown(), this.#flushLimitMs).catch(this.#reportLoss);
  }
}

/** One piece of work. It is exported after its end. */
export class Span {
  readonly #tracer: Tracer;
  readonly #context: Context;
  readonly #span: OpenTelemetrySpan;

  constructor(
    tracer: Tracer,
    parent: Context,
    name: string,
    { kind, attributes = {} }: SpanOptions,
    links: Link[] = [],
  ) {
    this.#tracer = tracer;
    this.#span = tracer.startSpan(
      name,
      { kind: spanKinds[kind], attributes: withoutUndefined(attributes), links },
      parent,
    );
    this.#context = trace.setSpan(parent, this.#span);
  }

  /** The id of the span and of its trace, as W3C Trace Context writes them. */
  get traceparent(): string {
    const { traceId, spanId } = this.#span.spanContext();
    return `00-${traceId}-${spanId}-01`;
  }

  startChild(name: string, options: SpanOptions): Span {
    return new Span(this.#tracer, this.#context, name, options);
  }

  setAttributes(attributes: SpanAttributes): void {
    this.#span.setAttributes(withoutUndefined(attributes));
  }

  /** Marks the work as failed. Of an error, only its code or name is exported: a message may hold a guest's data. */
  fail(errorOrCode: unknown): void {
    this.#span.setAttribute("error.type", typeof errorOrCode === "string" ? errorOrCode : codeOf(errorOrCode));
    this.#span.setStatus({ code: SpanStatusCode.ERROR });
  }

  end(): void {
    this.#span.end();
  }
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

function codeOf(error: unknown): string {
  const { type, code = type } = describeError(error);
  return code;
}

/** OpenTelemetry would export those that are undefined as empty values. */
function withoutUndefined(attributes: SpanAttributes): Record<string, string | number> {
  return Object.fromEntries(
    Object.entries(attributes).filter((entry): entry is [string, string | number] => entry[1] !== undefined),
  );
}
