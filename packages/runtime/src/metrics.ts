import { collectDefaultMetrics, Registry } from "prom-client";

export { Counter, Gauge, Histogram, type Registry } from "prom-client";

/** Creates a registry with the default metrics of the process (CPU, memory, event-loop delay, garbage collection). */
export function createMetrics(processName: string): Registry {
  const registry = new Registry();
  registry.setDefaultLabels({ process: processName });
  collectDefaultMetrics({ register: registry });
  return registry;
}
