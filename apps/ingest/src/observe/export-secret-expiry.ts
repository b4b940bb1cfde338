import { isRevoked, type Partner, type PartnerRegistry } from "@booking-events/partners";
import { Gauge, type Registry } from "@booking-events/runtime";

/** Exports when each partner is locked out, unless it gets another secret before. */
export function exportSecretExpiry(metrics: Registry, registry: () => PartnerRegistry): void {
  new Gauge({
    name: "ingest_secret_expires_timestamp_seconds",
    help: "When the last secret of an enabled partner expires or has expired. Absent if one does not expire.",
    labelNames: ["partner"],
    registers: [metrics],
    collect() {
      this.reset();
      for (const partner of registry().partners) {
        const endMs = findEnd(partner);
        if (Number.isFinite(endMs)) this.set({ partner: partner.id }, endMs / 1_000);
      }
    },
  });
}

/** In epoch milliseconds; infinite if the partner is not locked out by time. An operator revokes secrets knowingly. */
function findEnd({ enabled, secrets }: Partner): number {
  if (!enabled) return Number.POSITIVE_INFINITY;
  const ends = secrets
    .filter((secret) => !isRevoked(secret))
    .map(({ expiresAt }) => (expiresAt === null ? Number.POSITIVE_INFINITY : Date.parse(expiresAt)));
  return Math.max(...ends);
}
