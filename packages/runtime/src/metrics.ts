import { Counter, type CounterConfiguration, collectDefaultMetrics, Gauge, Registry } from "prom-client";
import { version } from "./version.ts";

export { Counter, Gauge, Histogram, type Registry } from "prom-client";

/** Creates a registry with the default metrics of the process (CPU, memory, event-loop delay, garbage collection). */
export function createMetrics(processName: string): Registry {
  const registry = new Registry();
  registry.setDefaultLabels({ process: processName });
  collectDefaultMetrics({ register: registry });
  new Gauge({
    name: "booking_events_build_info",
    help: "Always 1. The labels are the versions of this release and of Node.",
    labelNames: ["version", "node"],
    registers: [registry],
  }).set({ version, node: process.version }, 1);
  return registry;
}

/** One series of a counter. Add to it to count. */
export interface Tally {
  count: number;
}

/**
 * Creates a counter for hot paths. Whoever keeps the tally of a series counts with one addition. prom-client's own
 * counter builds a string from the labels each time.
 *
 * @returns a function that creates the tally of a series. Call it once for each combination of labels
 */
export function createTallies<Label extends string>(
  configuration: CounterConfiguration<Label>,
): (labels: Record<Label, string>) => Tally {
  const series: (Tally & { labels: Record<Label, string> })[] = [];
  new Counter({
    ...configuration,
    collect() {
      this.reset();
      for (const { labels, count } of series) this.inc(labels, count);
    },
  });
  return (labels) => {
    const tally = { labels, count: 0 };
    series.push(tally);
    return tally;
  };
}
