import { parseEnvironment, tracingSwitches, tracingVariables } from "./environment.ts";
import type { Logger } from "./logger.ts";

/** Exports what a process does as spans of OpenTelemetry. */
export interface Tracing {
  /**
   * Begins the first span of a trace in our processes, or returns undefined if the trace is not sampled.
   *
   * @param options.traceparent the caller's header. Only its ids are used: the caller's sampling flag is ignored. If it
   *   is malformed, a new trace begins
   */
  startTrace(name: string, options: SpanOptions & { traceparent: string | string[] | undefined }): Span | undefined;
  /**
   * Begins a span that belongs to traces that are sampled.
   *
   * @param options.parent the traceparent of a span. Default: a new trace begins
   * @param options.links the traceparents of other spans, of which the first {@link maxLinks} are exported
   */
  startSpan(name: string, options: SpanOptions & { parent?: string; links?: readonly string[] }): Span;
  /** Exports the spans that have ended, within a limited time. Never throws. */
  shutdown(): Promise<void>;
}

/** One piece of work. It is exported after its end. */
export interface Span {
  /** The id of the span and of its trace, as W3C Trace Context writes them. */
  readonly traceparent: string;
  startChild(name: string, options: SpanOptions): Span;
  /** Attributes that are undefined are left out. */
  setAttributes(attributes: SpanAttributes): void;
  /** Marks the work as failed. Of an error, only its code or name is exported: a message may hold a guest's data. */
  fail(errorOrCode: unknown): void;
  end(): void;
}

export interface SpanOptions {
  kind: "server" | "producer" | "consumer" | "client";
  attributes?: SpanAttributes;
}

/** None of the values may come from a payload, a header or a URL. */
export type SpanAttributes = Record<string, string | number | undefined>;

export interface TracingOptions {
  /** The default of `service.name`. */
  serviceName: string;
  /** In `process.env`, since OpenTelemetry's exporter reads more variables there. */
  environment: NodeJS.ProcessEnv;
  /** How long the whole shutdown of the process may take. */
  shutdownTimeoutMs: number;
  logger: Logger;
}

/** Half of the time in which connections are closed. */
const flushShare = 0.1;

/**
 * Reads the standard `OTEL_*` variables.
 *
 * @returns undefined if traces are off, which is the default. OpenTelemetry is then not even loaded
 * @throws StartError
 */
export async function createTracing(options: TracingOptions): Promise<Tracing | undefined> {
  const { environment, shutdownTimeoutMs } = options;
  if (!isOn(parseEnvironment(tracingSwitches, environment))) return undefined;
  const settings = parseEnvironment(tracingVariables, environment);
  const ratio = toRatio(settings.OTEL_TRACES_SAMPLER, settings.OTEL_TRACES_SAMPLER_ARG);
  if (ratio === 0) return undefined;
  const { startOpenTelemetry } = await import("./opentelemetry.ts");
  return startOpenTelemetry({ ...options, settings, ratio, flushLimitMs: shutdownTimeoutMs * flushShare });
}

function isOn(switches: ReturnType<typeof parseEnvironment<typeof tracingSwitches>>): boolean {
  if (switches.OTEL_SDK_DISABLED === "true" || switches.OTEL_TRACES_EXPORTER === "none") return false;
  if (switches.OTEL_TRACES_EXPORTER === "otlp") return true;
  const { OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT } = switches;
  return OTEL_EXPORTER_OTLP_ENDPOINT !== undefined || OTEL_EXPORTER_OTLP_TRACES_ENDPOINT !== undefined;
}

/** The samplers with and without `parentbased_` are the same, because a caller's sampling flag is ignored. */
function toRatio(sampler: string, argument: number): number {
  if (sampler.endsWith("always_off")) return 0;
  return sampler.endsWith("always_on") ? 1 : argument;
}

/** Runs `work` and ends its span, if there is one. */
export async function inSpan<Result>(span: Span | undefined, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    span?.fail(error);
    throw error;
  } finally {
    span?.end();
  }
}
