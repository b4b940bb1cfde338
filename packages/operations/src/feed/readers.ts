import {
  type FeedReader,
  listFeedReaders,
  removeFeedReader,
  replayFeedSince,
  resetFeedReader,
} from "@booking-events/store";
import { type ActingContext, recordTransaction } from "../actions/record-action.ts";
import type { Context } from "../context.ts";
import { OperationFailure } from "../operation-failure.ts";
import { readDatabase } from "../services/database.ts";

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

/**
 * Gives a reader all changes since a time again.
 *
 * @returns how many
 */
export function replayReader(context: ActingContext, reader: string, since: Date): Promise<number> {
  return recordTransaction(
    context,
    { command: "feed replay", arguments: { reader, since } },
    async (client, record) => {
      const changes = await replayFeedSince(client, reader, since);
      if (changes === undefined) throw unknownReader(reader);
      record.did = { changes };
      return changes;
    },
  );
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
