import { findQueuedEvents, type QueuedEvent, type QueueSearch, readQueueRecord } from "@booking-events/queue";
import { describeError } from "@booking-events/runtime";
import { type ReferenceKind, referenceKindOf } from "@booking-events/schema";
import { readDatabaseIdentity } from "@booking-events/store";
import type { Context } from "../context.ts";
import { readDatabase } from "../services/database.ts";
import { knowsRedis, readRedisSettings } from "../services/queue.ts";
import { findOtherDatabase } from "../services/require-same-database.ts";

export interface QueueView extends QueueSearch {
  /** Why the queue was not looked at; null: it was. */
  problem: string | null;
  isPaused: boolean;
}

const unseen = { events: [], total: 0, looked: 0, isPaused: false };

/** Finds a booking's events in the queue, if Redis can be reached. */
export async function searchQueue(
  context: Context,
  wanted: {
    partner: string;
    reference: string;
    referenceKind: ReferenceKind | undefined;
    maxLooked?: number | undefined;
  },
): Promise<QueueView> {
  const { environment } = context;
  if (!knowsRedis(environment)) return { ...unseen, problem: "REDIS_URL is not set" };
  const identity = await readDatabase(context, readDatabaseIdentity);
  const settings = readRedisSettings(environment);
  try {
    const record = await readQueueRecord(settings);
    if (findOtherDatabase(record, identity) !== null)
      return { ...unseen, problem: "the queue feeds another database; see ops status" };
    const search = await findQueuedEvents({ ...settings, ...wanted, isTest: context.isTest === true });
    return {
      ...search,
      events: search.events.filter(isOfKind(wanted.referenceKind)),
      problem: null,
      isPaused: record.isPaused,
    };
  } catch (error) {
    const isAnswer = error instanceof Error && error.name === "ReplyError";
    const { code } = describeError(error);
    return { ...unseen, problem: isAnswer ? `Redis refuses it (${code})` : "Redis does not answer" };
  }
}

function isOfKind(wanted: ReferenceKind | undefined): (event: QueuedEvent) => boolean {
  return ({ envelope }) => wanted === undefined || envelope === null || referenceKindOf(envelope.payload) === wanted;
}
