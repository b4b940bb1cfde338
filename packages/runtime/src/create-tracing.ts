import { parseEnvironment, tracingSwitches, tracingVariables } from "./environment.ts";
import type { Logger } from "./logger.ts";
import type { Tracing } from "./tracing.ts";

/** Half of the time in which connections are closed. */
const flushShare = 0.1;

/**
 * Reads the standard `OTEL_*` variables.
 *
 * @param options.serviceName the default of `service.name`
 * @param options.environment `process.env`, because OpenTelemetry's exporter reads more variables there
 * @param options.shutdownTimeoutMs how long the whole shutdown of the process may take
 * @returns undefined if traces are off, which is the default. OpenTelemetry is then not even loaded
 * @throws StartError
 */
export async function createTracing(options: {
  serviceName: string;
  environment: NodeJS.ProcessEnv;
  shutdownTimeoutMs: number;
  logger: Logger;
}): Promise<Tracing | undefined> {
  const { environment, shutdownTimeoutMs } = options;
  if (!isOn(parseEnvironment(tracingSwitches, environment))) return undefined;
  const settings = parseEnvironment(tracingVariables, environment);
  const ratio = toRatio(settings.OTEL_TRACES_SAMPLER, settings.OTEL_TRACES_SAMPLER_ARG);
  if (ratio === 0) return undefined;
  const { Tracing } = await import("./tracing.ts");
  return new Tracing({ ...options, settings, ratio, flushLimitMs: shutdownTimeoutMs * flushShare });
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
