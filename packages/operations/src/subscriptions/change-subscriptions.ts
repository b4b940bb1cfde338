import {
  pauseSubscription as pause,
  removeSubscription as remove,
  resumeSubscription as resume,
  rotateKeys,
  type Subscription,
} from "@booking-events/store";
import { type ActingContext, recordAction, recordTransaction } from "../actions/record-action.ts";
import type { Context } from "../context.ts";
import { OperationFailure } from "../operation-failure.ts";
import { readDatabase, withDatabase } from "../services/database.ts";
import { requireSubscription, unknownSubscription } from "./find-subscription.ts";
import { makeKeys, type ShownKeys } from "./make-keys.ts";
import { onceIdle } from "./once-idle.ts";

/** @throws OperationFailure if there is no such subscription */
export function findSubscription(context: Context, name: string): Promise<Subscription> {
  return readDatabase(context, (client) => requireSubscription(client, name));
}

/** @returns whether it was delivered to before */
export function pauseSubscription(
  context: ActingContext,
  subscription: string,
  { reason }: { reason: string | null },
): Promise<boolean> {
  const action = { command: "subscriptions pause", arguments: { subscription } };
  return recordTransaction(context, action, async (client, record) => {
    await requireSubscription(client, subscription);
    const hasChanged = await pause(client, subscription, { reason, by: context.by });
    record.did = { hasChanged };
    return hasChanged;
  });
}

/** @returns whether it was paused before */
export function resumeSubscription(context: ActingContext, subscription: string): Promise<boolean> {
  const action = { command: "subscriptions resume", arguments: { subscription } };
  return recordTransaction(context, action, async (client, record) => {
    await requireSubscription(client, subscription);
    const hasChanged = await resume(client, subscription);
    record.did = { hasChanged };
    return hasChanged;
  });
}

/**
 * Gives a subscription a new secret, key or token.
 *
 * @returns what the subscriber gets, once, and how long the old one stays in use; null: it does not
 */
export function rotateSubscription(
  context: ActingContext,
  subscription: string,
  { keepHours }: { keepHours: number },
): Promise<{ shown: ShownKeys; previousUntil: Date | null }> {
  const action = { command: "subscriptions rotate", arguments: { subscription, keepHours } };
  return recordTransaction(context, action, async (client) => {
    const { signature } = await requireSubscription(client, subscription);
    const { stored, shown } = await makeKeys(signature);
    const until = await rotateKeys(client, { name: subscription, ...stored, keepHours });
    if (until === undefined) throw unknownSubscription(subscription);
    return { shown, previousUntil: keepHours === 0 ? null : until };
  });
}

/** Removes a subscription, with its place and its dead letters. */
export function removeSubscription(context: ActingContext, subscription: string): Promise<void> {
  const action = { command: "subscriptions remove", arguments: { subscription } };
  return recordAction(context, action, () =>
    withDatabase(context, async (pool) => {
      // The process that posts must let go of the reader before, or it would create the reader again.
      await pause(pool, subscription, { reason: "is being removed", by: context.by });
      if (!(await onceIdle(pool, subscription, (client) => remove(client, subscription))))
        throw new OperationFailure(
          `The process webhooks still delivers to ${subscription}, which is paused now. Look at its log, and try again.`,
        );
    }),
  );
}
