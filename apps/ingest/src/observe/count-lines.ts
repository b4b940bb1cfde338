import type { ObserveRequest } from "@booking-events/http";
import type { Partner } from "@booking-events/partners";
import { createTallies, type Registry } from "@booking-events/runtime";

/** Counts each line of a batch, which the log only has in sum. */
export function createLineCounter(metrics: Registry): {
  /** Exports 0 lines of each partner until there are some. Prometheus does not count those with which a series begins. */
  expectPartners(partners: readonly Partner[]): void;
  count: ObserveRequest;
} {
  const tallyOf = createTallies({
    name: "ingest_batch_lines_total",
    help: "Lines of batches by status and partner. The requests that brought them count as requests of the kind batch.",
    labelNames: ["status", "partner"],
    registers: [metrics],
  });
  return {
    expectPartners(partners) {
      for (const { id, enabled } of partners) if (enabled) tallyOf("200", id);
    },
    count(line) {
      tallyOf(String(line.status), line.partner ?? "none").count += 1;
    },
  };
}
