import {
  type FeedReader,
  listSubscriptions as list,
  listFeedReaders,
  readSigningKeys,
  type Subscription,
} from "@booking-events/store";
import type { Context } from "../context.ts";
import { maxReaders } from "../feed/readers.ts";
import { readDatabase } from "../services/database.ts";
import { requireSubscription } from "./find-subscription.ts";
import { loadSubscribers } from "./load-subscribers.ts";

export interface SubscriptionRow {
  subscription: Subscription;
  /** Undefined: it has not begun. */
  reader: FeedReader | undefined;
}

export function listSubscriptions(context: Context): Promise<SubscriptionRow[]> {
  return readDatabase(context, async (client) => {
    const subscriptions = await list(client);
    const readers = new Map((await listFeedReaders(client, maxReaders)).map((reader) => [reader.name, reader]));
    return subscriptions.map((subscription) => ({ subscription, reader: readers.get(subscription.name) }));
  });
}

/** @returns with the public key, if it has one */
export function readSubscription(
  context: Context,
  name: string,
): Promise<SubscriptionRow & { publicKey: string | null }> {
  return readDatabase(context, async (client) => {
    const subscription = await requireSubscription(client, name);
    const isPublic = subscription.signature === "ed25519";
    const keys = isPublic ? await readSigningKeys(client, name) : undefined;
    const readers = await listFeedReaders(client, maxReaders);
    return {
      subscription,
      publicKey: keys === undefined ? null : (await loadSubscribers()).publicKeyOf(keys.signingKey),
      reader: readers.find((reader) => reader.name === name),
    };
  });
}
