import {
  describeCount,
  discardReaderLetters,
  listParked,
  listReaderLetters,
  listReaders,
  listSubscriptions,
  pauseSubscription,
  replayFeed,
  replayReaderLetters,
  resumeSubscription,
} from "@booking-events/operations";
import { paths } from "../page/paths.tsx";
import type { PageRequest } from "../server/page-request.ts";
import type { Pages } from "../server/pages.ts";
import { Refusal } from "../server/refusal.ts";
import { ReaderPage } from "./reader-page.tsx";
import { SubscriptionsPage } from "./subscriptions-page.tsx";

const maxLetters = 200;
const maxParked = 100;
const maxReasonLength = 200;

export function addSubscriptionPages(pages: Pages): void {
  pages.show("/subscriptions", async ({ operations }) => {
    const [subscriptions, readers] = await Promise.all([listSubscriptions(operations), listReaders(operations)]);
    const names = new Set(subscriptions.map(({ subscription }) => subscription.name));
    const others = readers.filter(({ name }) => !names.has(name));
    return <SubscriptionsPage subscriptions={subscriptions} readers={others} />;
  });
  pages.show("/subscriptions/:name", async (request) => {
    const owner = await findOwner(request);
    const [letters, parked] = await Promise.all([
      listReaderLetters(request.operations, owner, maxLetters),
      listParked(request.operations, owner.name, maxParked),
    ]);
    return <ReaderPage name={owner.name} row={owner} letters={letters} parked={parked} />;
  });
  addActions(pages);
}

/** A subscription, or a program that reads the feed by itself. */
async function findOwner({ operations, param }: PageRequest) {
  const name = param("name");
  const row = (await listSubscriptions(operations)).find(({ subscription }) => subscription.name === name);
  if (row !== undefined) return { what: "subscription" as const, name, ...row };
  const reader = (await listReaders(operations)).find((one) => one.name === name);
  if (reader !== undefined) return { what: "reader" as const, name, subscription: null, reader };
  throw new Refusal(404, "No such reader", "Nothing reads the feed under this name. The page Subscriptions has all.");
}

function addActions(pages: Pages): void {
  const to = ({ param }: PageRequest) => paths.subscription(param("name"));
  pages.act("/subscriptions/:name/pause", to, async ({ operations, param, given }) => {
    const name = param("name");
    const reason = given("reason")?.slice(0, maxReasonLength) ?? null;
    const isDone = await pauseSubscription(operations, name, { reason });
    return isDone ? `${name} is paused.` : `${name} was paused already.`;
  });
  pages.act("/subscriptions/:name/resume", to, async ({ operations, param }) => {
    const name = param("name");
    const isDone = await resumeSubscription(operations, name);
    return isDone ? `${name} is delivered to again.` : `${name} was not paused.`;
  });
  pages.act("/subscriptions/:name/replay", to, async ({ operations, param, time }) => {
    const since = time("since");
    if (since === undefined) throw new Refusal(422, "No time", "Say since when. Nothing was done.");
    const changes = await replayFeed(operations, { what: "subscription", name: param("name") }, since);
    return `Posted again: ${describeCount(changes, "change")}.`;
  });
  pages.act("/subscriptions/:name/dead-letters/replay", to, async (request) => {
    const count = await replayReaderLetters(request.operations, await findOwner(request), toIds(request));
    return `Tried again: ${describeCount(count, "dead letter")}.`;
  });
  pages.act("/subscriptions/:name/dead-letters/discard", to, async (request) => {
    const count = await discardReaderLetters(request.operations, await findOwner(request), toIds(request) ?? []);
    return `Counted as delivered: ${describeCount(count, "dead letter")}.`;
  });
}

/** @returns null: all */
function toIds({ given }: PageRequest): number[] | null {
  const change = given("change");
  if (change === undefined) return null;
  if (!/^\d{1,15}$/.test(change))
    throw new Refusal(422, "Not a change", "The form names no change. Load the page again.");
  return [Number(change)];
}
