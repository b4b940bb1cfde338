import { insertSubscription, type Subscription } from "@booking-events/store";
import type { Context } from "../context.ts";
import { OperationFailure } from "../operation-failure.ts";
import { withDatabase } from "../services/database.ts";
import { makeKeys, type ShownKeys } from "./make-keys.ts";
import { requireUsable } from "./require-usable.ts";

export type NewSubscription = Pick<
  Subscription,
  | "name"
  | "url"
  | "mode"
  | "payload"
  | "partners"
  | "changes"
  | "countries"
  | "arrivalFromDays"
  | "arrivalToDays"
  | "signature"
>;

/**
 * Adds a subscription.
 *
 * @returns what the subscriber gets, once
 * @throws OperationFailure if the process that posts would refuse it, or the name is taken
 */
export async function addSubscription(
  context: Context,
  subscription: NewSubscription,
  { by }: { by: string },
): Promise<ShownKeys> {
  const { name } = subscription;
  await requireUsable(context, subscription);
  const { stored, shown } = await makeKeys(subscription.signature);
  const result = await withDatabase(context, (pool) =>
    insertSubscription(pool, { ...subscription, ...stored, createdBy: by }),
  );
  if (result === "taken")
    throw new OperationFailure(
      `The name ${name} is taken by a subscription or another reader of the feed. Choose another one. List all: ` +
        "ops feed list",
    );
  return shown;
}
