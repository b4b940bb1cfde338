import {
  describeCount,
  discardReaderLetters,
  findSubscription,
  type LetterOwner,
  listParked,
  listReaderLetters,
  listReaders,
  listSubscriptions,
  parsePast,
  pauseSubscription,
  replayReaderLetters,
  replaySubscription,
  resumeSubscription,
} from "@booking-events/operations";
import type Router from "@koa/router";
import type { ConsoleContext } from "../context.ts";
import { paths } from "../page/paths.ts";
import { acting, type PageRequest, type PageState, showing } from "../server/page-routes.ts";
import { Refusal } from "../server/refusal.ts";
import { ReaderPage } from "./reader-page.tsx";
import { SubscriptionsPage } from "./subscriptions-page.tsx";

const maxLetters = 200;
const maxParked = 100;
const maxReasonLength = 200;

export function addSubscriptionRoutes(router: Router<PageState>, context: ConsoleContext): void {
  router.get(
    "/subscriptions",
    showing(context, async ({ view, operations }) => {
      const [subscriptions, readers] = await Promise.all([listSubscriptions(operations), listReaders(operations)]);
      const names = new Set(subscriptions.map(({ subscription }) => subscription.name));
      const others = readers.filter(({ name }) => !names.has(name));
      return <SubscriptionsPage view={view} subscriptions={subscriptions} readers={others} />;
    }),
  );
  router.get(
    "/subscriptions/:name",
    showing(context, async ({ view, operations, params }) => {
      const owner = await findOwner(operations, nameOf({ params }));
      const [letters, parked] = await Promise.all([
        listReaderLetters(operations, owner, maxLetters),
        listParked(operations, owner.name, maxParked),
      ]);
      return <ReaderPage view={view} name={owner.name} row={owner} letters={letters} parked={parked} />;
    }),
  );
  addPausing(router, context);
  addReplays(router, context);
}

const nameOf = ({ params }: Pick<PageRequest, "params">) => params["name"] ?? "";
const to = (request: PageRequest) => paths.subscription(nameOf(request));

/** A subscription, or a program that reads the feed by itself. */
async function findOwner(operations: PageRequest["operations"], name: string) {
  const row = (await listSubscriptions(operations)).find(({ subscription }) => subscription.name === name);
  if (row !== undefined) return { what: "subscription" as const, name, ...row };
  const reader = (await listReaders(operations)).find((one) => one.name === name);
  if (reader !== undefined) return { what: "reader" as const, name, subscription: null, reader };
  throw new Refusal(404, "No such reader", "Nothing reads the feed under this name. The page Subscriptions has all.");
}

function addPausing(router: Router<PageState>, context: ConsoleContext): void {
  router.post(
    "/subscriptions/:name/pause",
    acting(context, { role: "operator", to }, async ({ operations, params, form }) => {
      const name = nameOf({ params });
      const reason = (form.get("reason") ?? "").trim().slice(0, maxReasonLength) || null;
      return (await pauseSubscription(operations, name, { reason }))
        ? `${name} is paused.`
        : `${name} was paused already.`;
    }),
  );
  router.post(
    "/subscriptions/:name/resume",
    acting(context, { role: "operator", to }, async ({ operations, params }) => {
      const name = nameOf({ params });
      return (await resumeSubscription(operations, name))
        ? `${name} is delivered to again.`
        : `${name} was not paused.`;
    }),
  );
}

function addReplays(router: Router<PageState>, context: ConsoleContext): void {
  router.post(
    "/subscriptions/:name/replay",
    acting(context, { role: "operator", to }, async ({ operations, params, form }) => {
      const name = nameOf({ params });
      const since = parsePast((form.get("since") ?? "").trim(), operations.now());
      if (since === undefined)
        throw new Refusal(
          422,
          "Not a time",
          "Give a time such as 2026-11-20T12:00:00Z or 02:00 (in UTC), or how long ago, such as 2h. Nothing was done.",
        );
      if ((await findSubscription(operations, name)).url === null)
        throw new Refusal(422, "Not posted to", "Its subscriber pulls, and asks for what it wants again, by after.");
      const changes = await replaySubscription(operations, name, since);
      return `${describeCount(changes, "change")} since then ${changes === 1 ? "is" : "are"} posted again.`;
    }),
  );
  router.post(
    "/subscriptions/:name/dead-letters/replay",
    acting(context, { role: "operator", to }, async ({ operations, params, form }) => {
      const owner = await findOwner(operations, nameOf({ params }));
      const count = await replayReaderLetters(operations, owner, toIds(form));
      return `${describeCount(count, "dead letter")} ${count === 1 ? "is" : "are"} tried again.`;
    }),
  );
  router.post(
    "/subscriptions/:name/dead-letters/discard",
    acting(context, { role: "operator", to }, async ({ operations, params, form }) => {
      const owner: LetterOwner = await findOwner(operations, nameOf({ params }));
      const count = await discardReaderLetters(operations, owner, toIds(form) ?? []);
      return `${describeCount(count, "dead letter")} ${count === 1 ? "counts" : "count"} as delivered.`;
    }),
  );
}

/** @returns null: all */
function toIds(form: URLSearchParams): number[] | null {
  const given = form.get("change");
  if (given === null) return null;
  if (!/^\d{1,15}$/.test(given))
    throw new Refusal(422, "Not a change", "The form names no change. Load the page again.");
  return [Number(given)];
}
