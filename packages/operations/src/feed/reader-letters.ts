import {
  discardFeedDeadLetters,
  type FeedDeadLetter,
  inTransaction,
  listFeedDeadLetters,
  listFeedReaders,
  replayFeedDeadLetters,
} from "@booking-events/store";
import type { Context } from "../context.ts";
import { OperationFailure } from "../operation-failure.ts";
import { readDatabase, withDatabase } from "../services/database.ts";
import { requireSubscription } from "../subscriptions/find-subscription.ts";
import { maxReaders, unknownReader } from "./readers.ts";

const maxLetters = 10_000;

/** What has dead letters: a reader of the feed, or a subscription, which is one. */
export interface LetterOwner {
  what: "reader" | "subscription";
  name: string;
}

/**
 * Lists the changes that a reader could not be given, in the order of the feed.
 *
 * @throws OperationFailure if there is no such reader
 */
export function listReaderLetters(context: Context, { what, name }: LetterOwner): Promise<FeedDeadLetter[]> {
  return readDatabase(context, async (client) => {
    if (what === "subscription") await requireSubscription(client, name);
    else if ((await listFeedReaders(client, maxReaders)).every((reader) => reader.name !== name))
      throw unknownReader(name);
    return listFeedDeadLetters(client, name, maxLetters);
  });
}

/** @throws OperationFailure if a change has no dead letter */
export function requireLetters(letters: FeedDeadLetter[], ids: number[], name: string): void {
  const missing = ids.find((id) => letters.every(({ changeId }) => changeId !== id));
  if (missing !== undefined)
    throw new OperationFailure(`${name} has no dead letter of change ${missing}. Nothing was done.`);
}

/**
 * Lets dead letters be tried again.
 *
 * @param ids of changes. Null: all
 * @returns how many
 */
export function replayReaderLetters(context: Context, name: string, ids: number[] | null): Promise<number> {
  return withDatabase(context, (pool) => inTransaction(pool, (client) => replayFeedDeadLetters(client, name, ids)));
}

/** @returns how many */
export function discardReaderLetters(context: Context, name: string, ids: number[]): Promise<number> {
  return withDatabase(context, (pool) => inTransaction(pool, (client) => discardFeedDeadLetters(client, name, ids)));
}
