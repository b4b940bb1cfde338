import { randomRuns } from "@booking-events/harness/random-runs";
import { parseEnvelope } from "@booking-events/schema";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { canary, payload } from "./requests.ts";

const envelope = fc.record({
  version: fc.constant(1),
  eventId: fc.uuid({ version: 7 }),
  kind: fc.constantFrom("create", "update", "delete"),
  partner: fc.constant("acme"),
  sequence: fc.maxSafeNat(),
  receivedAt: fc.constant("2026-11-21T00:00:00.000Z"),
  idempotencyKey: fc.constantFrom(null, "key-1"),
  payload,
});

/** Some of its fields are missing or have other values. */
const mangledEnvelope = fc
  .tuple(
    envelope,
    fc.dictionary(fc.constantFrom("version", "eventId", "kind", "sequence", "payload", "x"), fc.jsonValue()),
  )
  .map(([whole, changes]) => ({ ...whole, ...changes }));

/** As it comes out of Redis: JSON. */
const queued = fc.oneof(envelope, mangledEnvelope, fc.jsonValue()).map((value) => JSON.parse(JSON.stringify(value)));

test("whatever comes out of the queue is parsed as an envelope or a problem, and never throws", () => {
  let valid = 0;
  void fc.assert(
    fc.property(queued, (value) => {
      const parsed = parseEnvelope(value);
      if (parsed.success) {
        valid += 1;
        // Further fields are left out.
        expect(value).toMatchObject(parsed.envelope);
      } else {
        expect(parsed.problem).toMatch(/\.$/);
        // A problem may show names of fields, and nothing else of the content.
        const names = JSON.stringify(Object.keys(Object(value?.payload)));
        if (!names.includes(canary) && typeof value?.payload === "object") expect(parsed.problem).not.toContain(canary);
      }
    }),
    { ...randomRuns(500), seed: 20_261_121 },
  );
  expect(valid).toBeGreaterThan(0);
});
