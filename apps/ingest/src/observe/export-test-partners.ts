import type { PartnerRegistry } from "@booking-events/partners";
import { Gauge, type Registry } from "@booking-events/runtime";

/** Exports who is a test partner: whoever tries something out is refused a lot and falls silent, which needs no alert. */
export function exportTestPartners(metrics: Registry, registry: () => PartnerRegistry): void {
  new Gauge({
    name: "ingest_test_partners",
    help: "1 for each test partner. No alert says that it is silent, refused or warned.",
    labelNames: ["partner"],
    registers: [metrics],
    collect() {
      this.reset();
      for (const { id, test } of registry().partners) if (test) this.set({ partner: id }, 1);
    },
  });
}
