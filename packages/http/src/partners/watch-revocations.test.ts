import { waitFor } from "@booking-events/harness";
import { partner } from "@booking-events/harness/partners";
import { digestSecret } from "@booking-events/partners";
import type { Revocation } from "@booking-events/queue";
import { createLogger, createMetrics } from "@booking-events/runtime";
import { afterEach, beforeEach, expect, test } from "vitest";
import { RevocationWatch } from "./watch-revocations.ts";

const sha256 = digestSecret("leaked");
const valid = [partner("acme", { leaked: null, other: null })];
/** As `ops partners revoke` writes it. */
const revoked = [partner("acme", { leaked: "2026-01-01T00:00:00Z", other: null })];

let inRedis: Map<string, Revocation>;
let isRedisUp: boolean;
let watch: RevocationWatch;

beforeEach(() => {
  inRedis = new Map();
  isRedisUp = true;
  watch = new RevocationWatch({
    app: "test",
    logger: createLogger({ name: "test", level: "silent" }),
    metrics: createMetrics("test"),
    async read() {
      if (!isRedisUp) throw new Error("Redis is down.");
      return new Set(inRedis.keys());
    },
    async write(revocations) {
      if (!isRedisUp) throw new Error("Redis is down.");
      for (const revocation of revocations) inRedis.set(revocation.sha256, revocation);
    },
  });
});

afterEach(() => watch.stop());

const warning = expect.stringMatching(
  /^The partners file brings back revoked secrets, which stay refused: acme\/s1\. /,
);

test("what Redis says was revoked is refused and reported, whatever the file says", async () => {
  inRedis.set(sha256, { sha256, partner: "acme", secretId: "s1" });
  await watch.start(5);
  watch.setPartners(valid);
  expect(watch.isRevoked(sha256)).toBe(true);
  expect(watch.isRevoked(digestSecret("other"))).toBe(false);
  expect(watch.warnings()).toEqual([warning]);
  watch.setPartners(revoked);
  expect(watch.isRevoked(sha256)).toBe(true);
  expect(watch.warnings()).toEqual([]);
});

test("what the file says was revoked is recorded, and stays refused, though Redis loses its data", async () => {
  await watch.start(5);
  watch.setPartners(revoked);
  await waitFor(() => expect(inRedis.get(sha256)).toEqual({ sha256, partner: "acme", secretId: "s1" }));
  inRedis.clear();
  await waitFor(() => expect(inRedis.size).toBe(1));
  isRedisUp = false;
  watch.setPartners(valid);
  expect(watch.isRevoked(sha256)).toBe(true);
  expect(watch.warnings()).toEqual([warning]);
});

test("a secret that leaves the file, expires or belongs to a disabled partner is not revoked", async () => {
  await watch.start(5);
  watch.setPartners([partner("acme", { leaked: "2026-01-02T00:00:00Z", other: null }, { enabled: false })]);
  watch.setPartners([]);
  watch.setPartners(valid);
  expect(watch.isRevoked(sha256)).toBe(false);
  expect(watch.isRevoked(digestSecret("other"))).toBe(false);
  expect(inRedis.size).toBe(0);
});

test("nothing is known until Redis has been read", async () => {
  isRedisUp = false;
  await watch.start(5);
  watch.setPartners(valid);
  expect(watch.isKnown()).toBe(false);
  inRedis.set(sha256, { sha256, partner: "acme", secretId: "s1" });
  isRedisUp = true;
  await waitFor(() => expect(watch.isKnown()).toBe(true));
  expect(watch.isRevoked(sha256)).toBe(true);
  expect(watch.warnings()).toEqual([warning]);
});
