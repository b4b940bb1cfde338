import { bookingFields, ExactNumber, validatePayload } from "@booking-events/schema";
import { expect, test } from "vitest";
import { describeViolations } from "./count-violations.ts";

const reference = { consumerTripPartnerExternalReference: "T-1" };
const nested = JSON.parse(`${'{"a":'.repeat(20)}1${"}".repeat(20)}`);

test.each<[rule: string, payload: Record<string, unknown>, field: string]>([
  ["missing", {}, "consumerTripPartnerExternalReference"],
  ["null", { ...reference, consumerPhone: null }, "consumerPhone"],
  ["number", { ...reference, consumerPhone: 491 }, "consumerPhone"],
  ["boolean", { ...reference, consumerTripIsLocal: true }, "consumerTripIsLocal"],
  ["array", { ...reference, consumerPhone: ["canary"] }, "consumerPhone"],
  ["object", { ...reference, consumerPhone: { canary: "canary" } }, "consumerPhone"],
  ["missing", { consumerTripPartnerExternalReference: " " }, "consumerTripPartnerExternalReference"],
  ["unstorable", { consumerTripPartnerExternalReference: "canary\0" }, "consumerTripPartnerExternalReference"],
  ["too-long", { ...reference, consumerPhone: "canary".repeat(2_000) }, "consumerPhone"],
  ["malformed", { ...reference, agentEmail: "canary" }, "agentEmail"],
  ["malformed", { ...reference, consumerTripArrivalDate: "2026-02-31" }, "consumerTripArrivalDate"],
  ["too-many-digits", { ...reference, canary: { canary: new ExactNumber("1e1000") } }, "unlisted"],
  ["too-many-digits", { ...reference, canary: Array(21).fill(new ExactNumber("1e999")) }, "payload"],
  ["too-deep", { ...reference, canary: nested }, "unlisted"],
  ["too-many-values", { ...reference, canary: new Array(2_000).fill("canary") }, "payload"],
])("calls a violation %s without saying what was sent", (rule, payload, field) => {
  const result = validatePayload("create", payload);
  if (result.success) throw new Error("The payload is valid.");
  expect(describeViolations(result.violationList)).toEqual([{ field, rule }]);
});

test("names only fields of the contract, for every kind of event", () => {
  const canary = new ExactNumber("1e1000");
  const payload = { consumerPhone: canary, canary, consumerTripIsLocal: { canary } };
  const result = validatePayload("delete", payload);
  if (result.success) throw new Error("The payload is valid.");
  const described = describeViolations(result.violationList);
  expect(described).toHaveLength(4);
  const names = new Set<string>(bookingFields.map(({ name }) => name)).add("unlisted");
  for (const { field } of described) expect(names).toContain(field);
  expect(JSON.stringify(described)).not.toContain("canary");
});
