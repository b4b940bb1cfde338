import { createMetrics } from "@booking-events/runtime";
import { expect, test } from "vitest";
import { createUnknownFieldCounter, maxNamesPerPartner } from "./count-unknown-fields.ts";

const metrics = createMetrics("test");
const countUnknownFields = createUnknownFieldCounter(metrics);

async function countsOf(partner: string): Promise<Record<string, number>> {
  const { values = [] } = (await metrics.getSingleMetric("ingest_unknown_fields_total")?.get()) ?? {};
  const ofPartner = values.filter(({ labels }) => labels["partner"] === partner);
  return Object.fromEntries(ofPartner.map(({ labels, value }) => [labels["name"], value]));
}

test("counts each field that the contract does not list, by partner and name", async () => {
  countUnknownFields("acme", { consumerPhone: "1", loyaltyTier: "gold", addressLine2: "x", __proto__: null });
  countUnknownFields("acme", { loyaltyTier: "gold" });
  countUnknownFields("other-partner", { loyaltyTier: "gold" });
  expect(await countsOf("acme")).toEqual({ loyaltyTier: 2, addressLine2: 1 });
  expect(await countsOf("other-partner")).toEqual({ loyaltyTier: 1 });
});

test.each([
  ["a person", "Anna Smith"],
  ["a telephone number", "+491701234567"],
  ["an id", "id7f3a91"],
  ["an address", "anna@example.com"],
  ["a long text", "a".repeat(65)],
  ["nothing", ""],
  ["a new line", "a\nb"],
  ["a text that takes a bad expression minutes", `${"a1".repeat(2)}${"a".repeat(60_000)}-`],
])("does not show %s in place of a name", async (what, name) => {
  countUnknownFields(what, { [name]: 1 });
  expect(await countsOf(what)).toEqual({ unusual: 1 });
});

test("a partner that invents names gets a bounded number of series", async () => {
  const letters = (number: number) => String.fromCharCode(97 + Math.floor(number / 26), 97 + (number % 26));
  for (let i = 0; i < 500; i += 1) countUnknownFields("inventive", { [`field_${letters(i)}`]: 1 });
  const counts = await countsOf("inventive");
  expect(Object.keys(counts)).toHaveLength(maxNamesPerPartner + 1);
  expect(counts["other"]).toBe(500 - maxNamesPerPartner);
  countUnknownFields("modest", { field_zz: 1 });
  expect(await countsOf("modest")).toEqual({ field_zz: 1 });
});
