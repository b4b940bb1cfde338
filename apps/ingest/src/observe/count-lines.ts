import type { ObserveRequest } from "@booking-events/http";
import { createTallies, type Registry } from "@booking-events/runtime";

/** Counts each line of a batch, which the log only has in sum. */
export function createLineObserver(metrics: Registry, observe: ObserveRequest): ObserveRequest {
  const tallyOf = createTallies({
    name: "ingest_batch_lines_total",
    help: "Lines of batches by status and partner. The requests that brought them count as requests of the kind batch.",
    labelNames: ["status", "partner"],
    registers: [metrics],
  });
  return (line) => {
    tallyOf(String(line.status), line.partner ?? "none").count += 1;
    observe(line);
  };
}
