export const openMetricsType = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/**
 * Converts Prometheus' text format to OpenMetrics 1.0. prom-client can write OpenMetrics too, but it then renames the
 * counters of the registry, so the same registry cannot serve both formats.
 */
export function toOpenMetrics(text: string): string {
  const families = text
    // The name of a counter has no suffix, but its samples do.
    .replaceAll(/^# HELP (\w+)_total (.*)\n# TYPE \1_total counter$/gm, "# HELP $1 $2\n# TYPE $1 counter")
    .replaceAll(/^(# HELP \w+ )(.*)$/gm, (_, start: string, help: string) => start + help.replaceAll('"', '\\"'))
    .replaceAll(/ Nan$/gm, " NaN")
    .replaceAll(/\n{2,}/g, "\n");
  return `${families}# EOF\n`;
}
