import type { Partner } from "@booking-events/partners";
import { expect, test } from "vitest";
import { readActivityWindow } from "./activity-window.ts";
import { describeActivity } from "./describe-activity.ts";
import { ActivityReader } from "./read-activity.ts";

test("what was found for a partner is not taken for what is known of its changed secrets", async () => {
  const now = new Date("2027-05-02T10:00:00Z");
  const usedAt: Record<string, Date> = { s1: new Date("2027-05-01"), s2: new Date("2027-05-02") };
  const reader = new ActivityReader({
    data: { readActivity: async () => ({ paces: [], notices: [], failed: [] }) },
    readRecords: async ({ secretIds }) => ({
      ...{ refusals: [], violations: [], warnings: [], answers: [] },
      lastUses: secretIds.map((id) => usedAt[id] ?? null),
    }),
    findWaiting: async () => ({ ofPartners: new Map(), isComplete: true }),
    look: async () => ({ available: 1, bytesToday: 0, dayEndsAt: now }),
  });
  const window = readActivityWindow("", now);
  const before: Partner = {
    ...{ id: "acme", name: "Acme", enabled: true, kinds: [], held: false, test: false },
    ...{ rateLimit: { perSecond: 1, burst: 1 }, bytesPerDay: 1 },
    secrets: ["s1", "s2"].map((id) => ({
      id,
      sha256: "0".repeat(64),
      createdAt: "2027-01-01T00:00:00Z",
      expiresAt: null,
    })),
  };
  const after = { ...before, secrets: before.secrets.slice(1) };
  await reader.read(before, window);
  const known = await reader.read(after, window);
  expect(describeActivity(known, { partner: after, secretId: "s2", window, now }).secrets).toMatchObject([
    { id: "s2", lastUsedAt: "2027-05-02T00:00:00.000Z" },
  ]);
});
