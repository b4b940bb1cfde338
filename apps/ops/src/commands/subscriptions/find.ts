import { findSubscription, type Queryable, type Subscription } from "@booking-events/store";
import { CommandFailure } from "../../terminal/command-failure.ts";

/** @throws CommandFailure if there is no such subscription */
export async function requireSubscription(client: Queryable, name: string): Promise<Subscription> {
  const subscription = await findSubscription(client, name);
  if (subscription === undefined) throw unknownSubscription(name);
  return subscription;
}

export function unknownSubscription(name: string): CommandFailure {
  return new CommandFailure(`There is no subscription ${name}. List all: ops subscriptions list`);
}
