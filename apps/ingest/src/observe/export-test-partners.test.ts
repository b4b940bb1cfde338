import { partner } from "@booking-events/harness/partners";
import { createPartnerRegistry } from "@booking-events/partners";
import { createMetrics } from "@booking-events/runtime";
import { expect, test } from "vitest";
import { exportTestPartners } from "./export-test-partners.ts";

test("only test partners of the current file have the metric", async () => {
  const metrics = createMetrics("test");
  let partners = [partner("acme", {}), partner("acme-test", {}, { test: true })];
  exportTestPartners(metrics, () => createPartnerRegistry({ partners }));
  const idsOf = async () =>
    Array.from((await metrics.metrics()).matchAll(/^ingest_test_partners\{.*partner="([^"]+)".* 1$/gm), ([, id]) => id);
  expect(await idsOf()).toEqual(["acme-test"]);
  partners = partners.slice(0, 1);
  expect(await idsOf()).toEqual([]);
});
