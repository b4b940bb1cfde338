import type { PartnerLimiter } from "@booking-events/http";
import { Gauge, type Registry } from "@booking-events/runtime";

/** Exports, of each partner that has sent something to this process, its bytes of today and how many it may send. */
export function exportQuotas(limiter: Pick<PartnerLimiter, "quotas">, metrics: Registry): void {
  new Gauge({
    name: "ingest_quota_bytes",
    help: "How many bytes of payloads a partner may have accepted in a day.",
    labelNames: ["partner"],
    registers: [metrics],
    collect() {
      this.reset();
      for (const { partner, bytes } of limiter.quotas()) this.set({ partner }, bytes);
    },
  });
  new Gauge({
    name: "ingest_quota_used_bytes",
    help: "Bytes of a partner's payloads that all ingests have accepted today, in UTC.",
    labelNames: ["partner"],
    registers: [metrics],
    collect() {
      this.reset();
      for (const { partner, usedBytes } of limiter.quotas()) this.set({ partner }, usedBytes);
    },
  });
}
