import { Counter, type CounterConfiguration, collectDefaultMetrics, Gauge, Registry } from "prom-client";
import { version } from "./version.ts";

export { Counter, Gauge, Histogram, type Registry } from "prom-client";

/**
 * How often the delay of the event loop is sampled. prom-client's 10 ms wake an idle process a hundred times a second.
 * The metrics of the delay include this interval, so they are at least as long.
 */
const delaySampleMs = 100;

/** Creates a registry with the default metrics of the process (CPU, memory, event-loop delay, garbage collection). */
export function createMetrics(processName: string): Registry {
  const registry = new Registry();
  registry.setDefaultLabels({ process: processName });
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: delaySampleMs });
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

/** The series that have some labels in common, by the next label. */
interface Branch {
  tally: Tally | undefined;
  next: Map<string, Branch>;
}

/**
 * Creates a counter for hot paths: counting is an addition, and a series is found without making a text of its labels,
 * as prom-client does each time.
 *
 * @returns a function that returns the tally of the series with these labels, in the order of `labelNames`
 */
export function createTallies(
  configuration: CounterConfiguration<string> & { labelNames: readonly string[] },
): (...values: string[]) => Tally {
  const { labelNames } = configuration;
  const series: { labels: Record<string, string>; tally: Tally }[] = [];
  const root: Branch = { tally: undefined, next: new Map() };
  new Counter({
    ...configuration,
    collect() {
      this.reset();
      for (const { labels, tally } of series) this.inc(labels, tally.count);
    },
  });

  function addSeries(values: string[]): Tally {
    const tally = { count: 0 };
    series.push({ labels: Object.fromEntries(labelNames.map((name, index) => [name, values[index] ?? ""])), tally });
    return tally;
  }

  return (...values) => {
    let branch = root;
    for (const value of values) {
      let next = branch.next.get(value);
      if (next === undefined) {
        next = { tally: undefined, next: new Map() };
        branch.next.set(value, next);
      }
      branch = next;
    }
    branch.tally ??= addSeries(values);
    return branch.tally;
  };
}
