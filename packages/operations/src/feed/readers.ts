import { type FeedReader, listFeedReaders, removeFeedReader, resetFeedReader } from "@booking-events/store";
import type { Context } from "../context.ts";
import { OperationFailure } from "../operation-failure.ts";
import { readDatabase, withDatabase } from "../services/database.ts";

/** Each is a program that somebody has written, or a subscription. */
export const maxReaders = 10_000;

/** Lists the readers of the feed, the one that is furthest behind first. */
export function listReaders(context: Context): Promise<FeedReader[]> {
  return readDatabase(context, (client) => listFeedReaders(client, maxReaders));
}

/** Makes a reader start over. */
export async function resetReader(context: Context, name: string): Promise<void> {
  if (!(await withDatabase(context, (pool) => resetFeedReader(pool, name)))) throw unknownReader(name);
}

/** Removes a reader whose program is gone. */
export async function removeReader(context: Context, name: string): Promise<void> {
  const result = await withDatabase(context, (pool) => removeFeedReader(pool, name));
  if (result === "unknown") throw unknownReader(name);
  if (result === "running")
    throw new OperationFailure(
      `The program of the reader ${name} ran in the last two minutes, and would be a reader again. Stop it first.`,
    );
}

export function unknownReader(name: string): OperationFailure {
  return new OperationFailure(`There is no reader ${name}. List all: ops feed list`);
}
