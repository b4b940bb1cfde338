import { insertSubscription, type Subscription, type SubscriptionSettings } from "@booking-events/store";
import { type ActingContext, recordTransaction } from "../actions/record-action.ts";
import { OperationFailure } from "../operation-failure.ts";
import { makeKeys, type ShownKeys } from "./make-keys.ts";
import { requireUsable } from "./require-usable.ts";

type NewSubscription = SubscriptionSettings & Pick<Subscription, "name" | "signature">;

/**
 * Adds a subscription.
 *
 * @returns what the subscriber gets, once
 * @throws OperationFailure if the process that posts would refuse it, or the name is taken
 */
export async function addSubscription(context: ActingContext, subscription: NewSubscription): Promise<ShownKeys> {
  const { name, url, partners, ...rest } = subscription;
  await requireUsable(context, subscription);
  const { stored, shown } = await makeKeys(subscription.signature);
  // The rest of a URL may be a password of the subscriber's.
  const origin = url === null ? null : new URL(url).origin;
  const action = { command: "subscriptions add", arguments: { subscription: name, origin, partners, ...rest } };
  await recordTransaction(context, action, async (client) => {
    const result = await insertSubscription(client, { ...subscription, ...stored, createdBy: context.by });
    if (result === "taken")
      throw new OperationFailure(
        `The name ${name} is taken by a subscription or another reader of the feed. Choose another one. List all: ` +
          "ops feed list",
      );
  });
  return shown;
}
