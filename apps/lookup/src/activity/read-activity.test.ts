import type { Partner } from "@booking-events/partners";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ActivityReader, type ActivitySources } from "./read-activity.ts";

const acme: Partner = {
  ...{ id: "acme", name: "Acme", enabled: true, held: false, test: false, kinds: ["create"], secrets: [] },
  ...{ rateLimit: { perSecond: 1, burst: 1 }, bytesPerDay: 1 },
};
const window = { hours: [], days: [] };
const nothing = { paces: [], notices: [], failed: [] };

beforeEach(() => void vi.useFakeTimers({ toFake: ["performance", "setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

test("a look that nobody waits for any more keeps no other one waiting", async () => {
  const asked: string[] = [];
  const unanswered: (() => void)[] = [];
  const sources: ActivitySources = {
    data: {
      readActivity(id) {
        asked.push(id);
        return new Promise((resolve) => unanswered.push(() => resolve(nothing)));
      },
    },
    readRecords: async () => ({ refusals: [], violations: [], warnings: [], answers: [], lastUses: [] }),
    findWaiting: async () => ({ ofPartners: new Map(), isComplete: true }),
    look: async () => ({ available: 1, bytesToday: 0, dayEndsAt: new Date(0) }),
  };
  const reader = new ActivityReader(sources);
  const read = (id: string) => reader.read({ ...acme, id }, window);
  // As many as look at once, and two that wait for them.
  const given = ["a", "b", "c", "d"].map((id) =>
    expect(read(id)).rejects.toThrow(expect.objectContaining({ name: "DeadlineExceeded" })),
  );
  await vi.advanceTimersByTimeAsync(1_501);
  await Promise.all(given);
  const next = read("e");
  for (const answer of unanswered.splice(0)) answer();
  await vi.waitFor(() => expect(asked).toEqual(["a", "b", "e"]));
  for (const answer of unanswered) answer();
  expect(await next).toMatchObject(nothing);
});
