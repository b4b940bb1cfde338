import {
  changeSubscription,
  filterChanges,
  inTransaction,
  pauseSubscription,
  type Queryable,
  resumeSubscription,
  type Subscription,
  type SubscriptionSettings,
} from "@booking-events/store";
import { type ActingContext, recordAction } from "../actions/record-action.ts";
import type { Pool } from "../context.ts";
import { OperationFailure } from "../operation-failure.ts";
import { withDatabase } from "../services/database.ts";
import { requireSubscription, unknownSubscription } from "./find-subscription.ts";
import { onceIdle } from "./once-idle.ts";
import { requireUsable } from "./require-usable.ts";

/** What is undefined stays as it is. */
export type SubscriptionChanges = {
  [Setting in keyof SubscriptionSettings]: SubscriptionSettings[Setting] | undefined;
};

/**
 * Changes a subscription, which keeps its place. A filter decides from now on: of a booking that the subscriber knows it
 * also hears when that is deleted or erased.
 *
 * @returns the subscription as it is now
 * @throws OperationFailure if something can't be changed
 */
export async function setSubscription(
  context: ActingContext,
  name: string,
  changes: SubscriptionChanges,
): Promise<Subscription> {
  await requireUsable(context, changes);
  const { url, ...rest } = changes;
  // The rest of a URL may be a password of the subscriber's.
  const origin = url ? new URL(url).origin : url;
  const action = { command: "subscriptions set", arguments: { subscription: name, origin, ...rest } };
  return recordAction(context, action, (record) =>
    withDatabase(context, async (pool) => {
      const before = await requireSubscription(pool, name);
      const wanted = merge(before, changes);
      requirePossible(before, changes, wanted);
      if (!hasMemory(before) && hasMemory(wanted)) await changeAndRemember(pool, before, wanted, context.by);
      else
        await inTransaction(pool, async (client) => {
          const result = await changeSubscription(client, name, wanted, { remembers: false, resumes: false });
          if (result === "unknown") throw unknownSubscription(name);
          await record.complete(client);
        });
      return requireSubscription(pool, name);
    }),
  );
}

function merge(before: SubscriptionSettings, changes: SubscriptionChanges): SubscriptionSettings {
  const given = Object.entries(changes).filter(([, value]) => value !== undefined);
  return { ...before, ...Object.fromEntries(given) };
}

function requirePossible(
  { name, url, partners: known }: Subscription,
  changes: SubscriptionChanges,
  { partners, arrivalFromDays, arrivalToDays }: SubscriptionSettings,
): void {
  if (url === null && (changes.url !== undefined || changes.mode !== undefined))
    throw new OperationFailure(
      `The subscriber of ${name} pulls, which can't be changed, so it takes no --url and no --mode. To post to it, add ` +
        "another subscription.",
    );
  const left = known === null ? partners !== null : known.some((id) => !(partners?.includes(id) ?? true));
  if (left)
    throw new OperationFailure(
      `The subscriber of ${name} knows bookings of ${known === null ? "all partners" : known.join(", ")}, and must hear ` +
        "when one is erased, so no partner can be left out. Add another subscription. Remove this one when its " +
        "subscriber has deleted what it keeps.",
    );
  if (arrivalFromDays !== null && arrivalToDays !== null && arrivalFromDays > arrivalToDays)
    throw new OperationFailure(
      `The window would end before it begins: from ${arrivalFromDays} to ${arrivalToDays} days after the change.`,
    );
  if ((arrivalFromDays === null) !== (arrivalToDays === null))
    throw new OperationFailure("It has no window so far. Give both --arrival-from-days and --arrival-to-days.");
}

/** Whether its reader remembers what it was given: see feed_handed. */
function hasMemory({ changes, countries, arrivalFromDays }: SubscriptionSettings): boolean {
  return changes !== null || countries !== null || arrivalFromDays !== null;
}

async function changeAndRemember(
  pool: Pool,
  { name, pauseReason: reasonBefore }: Subscription,
  wanted: SubscriptionSettings,
  by: string,
): Promise<void> {
  // The process that posts must let go of the reader before, or what it posts by the old filter would not be remembered.
  const hasPaused = await pauseSubscription(pool, name, { reason: filterChanges, by });
  // A change that was killed has left it paused.
  const resumes = hasPaused || reasonBefore === filterChanges;
  const change = (client: Queryable) => changeSubscription(client, name, wanted, { remembers: true, resumes });
  try {
    if (await onceIdle(pool, name, change)) return;
    throw new OperationFailure(
      `Nothing was changed: the process webhooks still delivers to ${name}. Look at its log, and try again.`,
    );
  } catch (error) {
    if (resumes) await inTransaction(pool, (client) => resumeSubscription(client, name));
    throw error;
  }
}
