import { FeedGapError, pullChanges } from "@booking-events/feed";
import type { PullSubscription } from "@booking-events/store";
import { toEvent } from "@booking-events/subscribers";
import type { Pool } from "pg";
import { filterOf } from "../subscriptions/filter-of.ts";
import { changesMissing, PullRefused } from "./pull-answers.ts";

export interface Page {
  /** As JSON. */
  changes: string[];
  /** The answer is complete up to here. With a filter, this may be past the last change. */
  last: number;
}

/** Changes that are read at once, with up to 128 KiB of payloads each. */
const changesPerRead = 50;
/** An answer ends after the change with which it exceeds this. */
const maxCharacters = 4_000_000;
/** Then the answer ends, although a filter has left out nearly all. The next one begins there. */
const maxReads = 20;

/**
 * Reads what a subscriber gets after an id.
 *
 * @throws PullRefused if changes are missing
 */
export async function readPage(
  { database, schema }: { database: Pool; schema: string },
  subscription: PullSubscription,
  { after, limit }: { after: number; limit: number },
): Promise<Page> {
  const { name, payload } = subscription;
  const filter = filterOf(subscription);
  const page: Page = { changes: [], last: after };
  let isEnd = false;
  let characters = 0;
  for (let reads = 0; reads < maxReads && !isEnd && characters < maxCharacters; reads += 1) {
    const left = limit - page.changes.length;
    if (left === 0) break;
    const options = { name, schema, after: page.last, limit: Math.min(left, changesPerRead), filter };
    const read = await pullChanges(database, options).catch(refuseGap);
    for (const { change, changedFields } of read.changes) {
      const json = JSON.stringify({ ...toEvent(change, { payload, changedFields }), id: change.id });
      page.changes.push(json);
      characters += json.length;
    }
    page.last = read.upTo;
    isEnd = read.isEnd;
  }
  return page;
}

function refuseGap(error: unknown): never {
  throw error instanceof FeedGapError ? new PullRefused(changesMissing(error.after), { cause: error }) : error;
}
