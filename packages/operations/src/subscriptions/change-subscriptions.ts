import { setTimeout as sleep } from "node:timers/promises";
import {
  inTransaction,
  pauseSubscription as pause,
  removeSubscription as remove,
  replayFeedSince,
  resumeSubscription as resume,
  rotateKeys,
  type Subscription,
} from "@booking-events/store";
import type { Context } from "../context.ts";
import { OperationFailure } from "../operation-failure.ts";
import { readDatabase, withDatabase } from "../services/database.ts";
import { requireSubscription, unknownSubscription } from "./find-subscription.ts";
import { makeKeys, type ShownKeys } from "./make-keys.ts";

/** A process that has died is active for up to 10 s more. */
const removalLimitMs = 20_000;
const removalStepMs = 200;

/** @throws OperationFailure if there is no such subscription */
export function findSubscription(context: Context, name: string): Promise<Subscription> {
  return readDatabase(context, (client) => requireSubscription(client, name));
}

/** @returns whether it was delivered to before */
export function pauseSubscription(
  context: Context,
  name: string,
  options: { reason: string | null; by: string },
): Promise<boolean> {
  return withDatabase(context, async (pool) => {
    await requireSubscription(pool, name);
    return pause(pool, name, options);
  });
}

/** @returns whether it was paused before */
export function resumeSubscription(context: Context, name: string): Promise<boolean> {
  return withDatabase(context, async (pool) => {
    await requireSubscription(pool, name);
    return inTransaction(pool, (client) => resume(client, name));
  });
}

/**
 * Gives a subscription a new secret, key or token.
 *
 * @returns what the subscriber gets, once, and how long the old one stays in use; null: it does not
 */
export async function rotateSubscription(
  context: Context,
  name: string,
  { keepHours }: { keepHours: number },
): Promise<{ shown: ShownKeys; previousUntil: Date | null }> {
  return withDatabase(context, async (pool) => {
    const { signature } = await requireSubscription(pool, name);
    const { stored, shown } = await makeKeys(signature);
    const until = await rotateKeys(pool, { name, ...stored, keepHours });
    if (until === undefined) throw unknownSubscription(name);
    return { shown, previousUntil: keepHours === 0 ? null : until };
  });
}

/**
 * Posts all changes since a time again.
 *
 * @returns how many
 */
export async function replaySubscription(context: Context, name: string, since: Date): Promise<number> {
  const changes = await withDatabase(context, (pool) =>
    inTransaction(pool, (client) => replayFeedSince(client, name, since)),
  );
  if (changes === undefined)
    throw new OperationFailure(`Nothing has been posted to ${name} yet. Check that the process webhooks runs.`);
  return changes;
}

/** Removes a subscription, with its place and its dead letters. */
export function removeSubscription(context: Context, name: string, { by }: { by: string }): Promise<void> {
  return withDatabase(context, async (pool) => {
    // The process that posts must let go of the reader before, or it would create the reader again.
    await pause(pool, name, { reason: "is being removed", by });
    for (const giveUpAtMs = Date.now() + removalLimitMs; ; ) {
      const result = await inTransaction(pool, (client) => remove(client, name));
      if (result === "removed") return;
      if (result === "unknown") throw unknownSubscription(name);
      if (Date.now() > giveUpAtMs)
        throw new OperationFailure(
          `The process webhooks still delivers to ${name}, which is paused now. Look at its log, and try again.`,
        );
      await sleep(removalStepMs);
    }
  });
}
