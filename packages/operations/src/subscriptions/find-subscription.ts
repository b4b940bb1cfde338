import { findSubscription, type Queryable, type Subscription } from "@booking-events/store";
import { OperationFailure } from "../operation-failure.ts";

/** @throws OperationFailure if there is no such subscription */
export async function requireSubscription(client: Queryable, name: string): Promise<Subscription> {
  const subscription = await findSubscription(client, name);
  if (subscription === undefined) throw unknownSubscription(name);
  return subscription;
}

export function unknownSubscription(name: string): OperationFailure {
  return new OperationFailure(`There is no subscription ${name}. List all: ops subscriptions list`);
}
