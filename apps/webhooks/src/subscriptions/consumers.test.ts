import { setTimeout as sleep } from "node:timers/promises";
import { type SingleOptions, StopDelivering } from "@booking-events/feed";
import { waitFor } from "@booking-events/harness";
import { createLogger } from "@booking-events/runtime";
import type { WebhookSubscription } from "@booking-events/store";
import { createSigningKey } from "@booking-events/subscribers";
import { beforeEach, expect, test } from "vitest";
import { Consumers } from "./consumers.ts";

const signingKey = createSigningKey("hmac");
const first = new Date("2026-11-26T07:00:00Z");
const later = new Date("2026-11-26T08:00:00Z");

function subscription(name: string, more: Partial<WebhookSubscription> = {}): WebhookSubscription {
  return {
    ...{ name, url: "https://hooks.example.com/", mode: "latest", payload: "thin", signature: "hmac", signingKey },
    ...{ partners: null, changes: null, countries: null, arrivalFromDays: null, arrivalToDays: null, fromId: 7 },
    ...{ previousSigningKey: null, previousKeyUntil: null, pausedAt: null, pauseReason: null, pausedBy: null },
    ...{ createdAt: first, createdBy: "Ada", updatedAt: first },
    ...more,
  };
}

type Added = SingleOptions & { onStopped: (error: unknown) => void };

/** What is delivered to, and what happened to it, in order. */
let added: Map<string, Added>;
let happened: string[];
/** Resolve when the last posts are done. */
let lastPosts: Promise<unknown>;
let pause: (name: string, reason: string) => Promise<unknown>;
let consumers: Consumers;

beforeEach(() => {
  added = new Map();
  happened = [];
  lastPosts = Promise.resolve();
  pause = async (name, reason) => happened.push(`pause ${name}: ${reason}`);
  consumers = new Consumers({
    deliveries: {
      add(options) {
        expect(added.has(options.name)).toBe(false);
        added.set(options.name, options);
        happened.push(`add ${options.name}`);
      },
      async remove(name) {
        await lastPosts;
        added.delete(name);
        happened.push(`remove ${name}`);
      },
    },
    network: { allowPrivate: false },
    pause: (name, reason) => pause(name, reason),
    forget: (name) => happened.push(`forget ${name}`),
    logger: createLogger({ name: "test", level: "silent" }),
  });
});

test("each subscription is a consumer that begins where it was added, with its filter", async () => {
  const filter = { partners: ["acme"], changes: ["created" as const], countries: ["ES"] };
  const arrival = { arrivalFromDays: -1, arrivalToDays: 14 };
  await consumers.follow([subscription("all"), subscription("some", { ...filter, ...arrival, mode: "every" })]);
  expect(added.get("all")).toMatchObject({ mode: "latest", from: { after: 7, orOldest: true }, filter: {} });
  expect(added.get("some")).toMatchObject({
    ...{ mode: "every", filter: { ...filter, arrival: { fromDays: -1, toDays: 14 } } },
  });
  expect(consumers.count).toBe(2);
});

test("one that stays the same goes on", async () => {
  for (let looks = 0; looks < 3; looks += 1) await consumers.follow([subscription("a")]);
  expect(happened).toEqual(["add a"]);
});

test("one that has changed begins again when its last posts are done", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  lastPosts = promise;
  await consumers.follow([subscription("a"), subscription("b")]);
  await consumers.follow([subscription("a", { updatedAt: later }), subscription("b")]);
  await consumers.follow([subscription("a", { updatedAt: later, mode: "every" }), subscription("b")]);
  expect(happened).toEqual(["add a", "add b"]);
  resolve();
  await waitFor(() => expect(happened.slice(2)).toEqual(["remove a", "forget a", "add a"]));
  expect(added.get("a")).toMatchObject({ mode: "every" });
});

test("one whose previous key has ended begins again, without that key", async () => {
  const rotated = { previousSigningKey: createSigningKey("hmac"), previousKeyUntil: later };
  await consumers.follow([subscription("a", rotated)]);
  await consumers.follow([subscription("a")]);
  await waitFor(() => expect(happened).toEqual(["add a", "remove a", "forget a", "add a"]));
});

test("one that a replay has moved to before its beginning begins there from then on", async () => {
  await consumers.follow([subscription("a")]);
  await consumers.follow([subscription("a", { fromId: 5 })]);
  await waitFor(() => expect(happened).toEqual(["add a", "remove a", "forget a", "add a"]));
  expect(added.get("a")).toMatchObject({ from: { after: 5 } });
});

test("one that was removed or paused ends", async () => {
  await consumers.follow([subscription("a")]);
  await consumers.follow([]);
  await waitFor(() => expect(happened).toEqual(["add a", "remove a", "forget a"]));
  expect(consumers.count).toBe(0);
});

test("one that stops by itself is paused with the reason, also if that can't be written at first", async () => {
  await consumers.follow([subscription("a")]);
  const write = pause;
  pause = () => Promise.reject(new Error("PostgreSQL is away."));
  added.get("a")?.onStopped(new StopDelivering("The subscriber answered 410."));
  await sleep(0);
  expect(consumers.count).toBe(0);
  await expect(consumers.follow([subscription("a")])).rejects.toThrow("PostgreSQL is away.");
  pause = write;
  await consumers.follow([subscription("a")]);
  expect(happened).toEqual(["add a", "pause a: The subscriber answered 410."]);
  // The operator resumes it.
  await consumers.follow([subscription("a", { updatedAt: later })]);
  await waitFor(() => expect(happened.at(-1)).toBe("add a"));
  expect(consumers.count).toBe(1);
});

test("an unknown error says nothing of itself in the reason", async () => {
  await consumers.follow([subscription("a")]);
  added.get("a")?.onStopped(new Error("robin@example.com"));
  expect(happened).toEqual(["add a", "pause a: The process that posts met an error of its own: see its log."]);
});
