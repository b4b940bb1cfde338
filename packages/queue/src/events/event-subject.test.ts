import { expect, test } from "vitest";
import { digestSubject } from "./event-subject.ts";

const reference = { consumerTripPartnerExternalReference: "TRIP-1" };

test("a booking's events have the same subject, whatever their content", () => {
  const subject = digestSubject({ partner: "acme", payload: reference });

  expect(digestSubject({ partner: "acme", payload: { ...reference, consumerPhone: "+442071838750" } })).toBe(subject);
  expect(subject).toMatch(/^acme [\w-]{16}$/);
  expect(subject).not.toContain("TRIP");
});

test.each([
  ["partner", { partner: "acme2", payload: reference }],
  ["reference", { partner: "acme", payload: { consumerTripPartnerExternalReference: "TRIP-2" } }],
  [
    "place of the border between them",
    { partner: "acme\0TRIP", payload: { consumerTripPartnerExternalReference: "1" } },
  ],
])("a different %s gives a different subject", (_, event) => {
  expect(digestSubject(event)).not.toBe(digestSubject({ partner: "acme", payload: reference }));
});
