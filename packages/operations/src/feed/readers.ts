import { type FeedReader, listFeedReaders, removeFeedReader, resetFeedReader } from "@booking-events/store";
import { type ActingContext, recordTransaction } from "../actions/record-action.ts";
import type { Context } from "../context.ts";
import { OperationFailure } from "../operation-failure.ts";
import { readDatabase } from "../services/database.ts";

/** A reader of the feed as an operator names it: a program, or a subscription, which is one. */
export interface NamedReader {
  what: "reader" | "subscription";
  name: string;
}

/** What the command line calls them. */
export const commandOf = { reader: "feed", subscription: "subscriptions" };

/** Each is a program that somebody has written, or a subscription. */
export const maxReaders = 10_000;

/** Lists the readers of the feed, the one that is furthest behind first. */
export function listReaders(context: Context): Promise<FeedReader[]> {
  return readDatabase(context, (client) => listFeedReaders(client, maxReaders));
}

/** Makes a reader start over. */
export function resetReader(context: ActingContext, reader: string): Promise<void> {
  return recordTransaction(context, { command: "feed reset", arguments: { reader } }, async (client) => {
    if (!(await resetFeedReader(client, reader))) throw unknownReader(reader);
  });
}

/** Removes a reader whose program is gone. */
export function removeReader(context: ActingContext, reader: string): Promise<void> {
  return recordTransaction(context, { command: "feed remove", arguments: { reader } }, async (client) => {
    const result = await removeFeedReader(client, reader);
    if (result === "unknown") throw unknownReader(reader);
    if (result === "running")
      throw new OperationFailure(
        `The program of the reader ${reader} ran in the last two minutes, and would be a reader again. Stop it first.`,
      );
  });
}

export function unknownReader(name: string): OperationFailure {
  return new OperationFailure(`There is no reader ${name}. List all: ops feed list`);
}
