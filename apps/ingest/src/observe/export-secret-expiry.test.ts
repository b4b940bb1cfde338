import { partner } from "@booking-events/harness/partners";
import { createPartnerRegistry, type Partner } from "@booking-events/partners";
import { createMetrics } from "@booking-events/runtime";
import { expect, test } from "vitest";
import { exportSecretExpiry } from "./export-secret-expiry.ts";

/** Of all partners with the metric, when their last secrets expire. */
async function readEnds(partners: Partner[]): Promise<Record<string, string>> {
  const metrics = createMetrics("test");
  exportSecretExpiry(metrics, () => createPartnerRegistry({ partners }));
  const lines = (await metrics.metrics()).matchAll(/^ingest_secret_expires_.*partner="([^"]+)".* (\d+)$/gm);
  return Object.fromEntries(
    Array.from(lines, ([, id, seconds]) => [id, new Date(Number(seconds) * 1_000).toISOString()]),
  );
}

test("a partner is locked out when the last of its secrets expires", async () => {
  const ends = await readEnds([
    partner("successor", { a: "2026-12-01T00:00:00Z", b: "2027-12-01T00:00:00Z" }),
    partner("expired", { c: "2026-02-01T00:00:00Z" }),
  ]);
  expect(ends).toEqual({ successor: "2027-12-01T00:00:00.000Z", expired: "2026-02-01T00:00:00.000Z" });
});

test("nobody else has the metric: one secret never expires, the partner is disabled, or all secrets were revoked", async () => {
  const revoked = { a: "2026-01-01T00:00:00Z" };
  const ends = await readEnds([
    partner("forever", { b: "2026-12-01T00:00:00Z", c: null }),
    partner("disabled", { d: "2026-12-01T00:00:00Z" }, { enabled: false }),
    partner("revoked", revoked),
    partner("none", {}),
  ]);
  expect(ends).toEqual({});
});
