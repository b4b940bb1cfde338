import { type BookingChange, type Delivery, RetryAfter, StopDelivering } from "@booking-events/feed";
import type { PostOutcome } from "@booking-events/subscribers";
import { expect, test } from "vitest";
import { PostFailed, postDelivery } from "./post-delivery.ts";

const change = {
  ...{ id: 7, bookingId: "3f0d6a2c-6a51-4c0e-9a6e-0d6f6f6f0001", partner: "acme", referenceKind: "trip" },
  ...{ reference: "TRIP-1", revision: 2, change: "updated", eventId: "0199a000-0000-7000-8000-000000000001" },
  ...{ sequence: 1, previousEventId: null, changedAt: new Date("2026-11-26T07:00:00Z"), payload: { note: "B" } },
  ...{ payloadState: "as-changed", defaultCountry: null, previousPayload: { note: "A" }, previousPayloadState: "none" },
} as unknown as BookingChange;
const delivery: Delivery = { change, key: "hotel-7", attempt: 1, changedFields: ["note"], standsForEarlier: false };
const { signal } = new AbortController();

const deliverTo = (outcome: PostOutcome) =>
  postDelivery({ post: async () => outcome }, delivery, { payload: "thin", signal });

test("what is posted is the change as an event, under the key that its attempts share", async () => {
  const posts: { id: string; body: string; signal: AbortSignal }[] = [];
  const subscriber = {
    async post(post: (typeof posts)[number]): Promise<PostOutcome> {
      posts.push(post);
      return { kind: "done", status: 200 };
    },
  };
  await postDelivery(subscriber, delivery, { payload: "full", signal });
  expect(posts).toMatchObject([{ id: "hotel-7", signal }]);
  const event = JSON.parse(posts[0]?.body ?? "");
  expect(event).toMatchObject({ id: "7", type: "booking.updated", subject: "TRIP-1" });
  expect(event.data).toMatchObject({ changedFields: ["note"], sent: { note: "B" } });
});

test("the engine is told what the subscriber has answered", async () => {
  await deliverTo({ kind: "done", status: 204 });
  await expect(deliverTo({ kind: "gone", status: 410 })).rejects.toThrow(StopDelivering);
  const asked = await deliverTo({ kind: "wait", status: 429, pauseMs: 30_000 }).catch((error: unknown) => error);
  expect(asked).toBeInstanceOf(RetryAfter);
  expect(asked).toMatchObject({ pauseMs: 30_000 });
  const failed = await deliverTo({ kind: "failed", status: 500, failure: "http-500" }).catch((error: unknown) => error);
  expect(failed).toBeInstanceOf(PostFailed);
  expect(failed).toMatchObject({ code: "http-500" });
});
