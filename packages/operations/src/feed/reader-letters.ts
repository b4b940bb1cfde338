import {
  discardFeedDeadLetters,
  type FeedDeadLetter,
  listFeedDeadLetters,
  listFeedReaders,
  listParkedDeliveries,
  type ParkedDelivery,
  type Queryable,
  replayFeedDeadLetters,
} from "@booking-events/store";
import { type ActingContext, recordTransaction } from "../actions/record-action.ts";
import type { Context } from "../context.ts";
import { OperationFailure } from "../operation-failure.ts";
import { readDatabase } from "../services/database.ts";
import { requireSubscription } from "../subscriptions/find-subscription.ts";
import { commandOf, maxReaders, type NamedReader, unknownReader } from "./readers.ts";

const maxLetters = 10_000;

/**
 * Lists the changes that a reader could not be given, in the order of the feed.
 *
 * @throws OperationFailure if there is no such reader
 */
export function listReaderLetters(
  context: Context,
  { what, name }: NamedReader,
  limit = maxLetters,
): Promise<FeedDeadLetter[]> {
  return readDatabase(context, async (client) => {
    if (what === "subscription") await requireSubscription(client, name);
    else if ((await listFeedReaders(client, maxReaders)).every((reader) => reader.name !== name))
      throw unknownReader(name);
    return listFeedDeadLetters(client, name, limit);
  });
}

/** Lists the bookings that wait for another attempt of a reader: those that are tried next first. */
export function listParked(context: Context, name: string, limit: number): Promise<ParkedDelivery[]> {
  return readDatabase(context, (client) => listParkedDeliveries(client, name, limit));
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
 * @param changeIds null: all
 * @returns how many
 */
export function replayReaderLetters(
  context: ActingContext,
  { what, name }: NamedReader,
  changeIds: number[] | null,
): Promise<number> {
  const action = { command: `${commandOf[what]} dead-letters --replay`, arguments: { [what]: name, changeIds } };
  return actOnLetters(context, action, (client) => replayFeedDeadLetters(client, name, changeIds));
}

/** @returns how many */
export function discardReaderLetters(
  context: ActingContext,
  { what, name }: NamedReader,
  changeIds: number[],
): Promise<number> {
  const action = { command: `${commandOf[what]} dead-letters --discard`, arguments: { [what]: name, changeIds } };
  return actOnLetters(context, action, (client) => discardFeedDeadLetters(client, name, changeIds));
}

/** @param change returns how many dead letters it has changed */
function actOnLetters(
  context: ActingContext,
  action: { command: string; arguments: object },
  change: (client: Queryable) => Promise<number>,
): Promise<number> {
  return recordTransaction(context, action, async (client, record) => {
    const deadLetters = await change(client);
    record.did = { deadLetters };
    return deadLetters;
  });
}
