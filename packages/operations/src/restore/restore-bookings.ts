import { hash } from "node:crypto";
import { type NumberedEvent, openQueuedEvents, reservePlace, subjectOf } from "@booking-events/queue";
import type { ReferenceKind } from "@booking-events/schema";
import {
  type DigestKey,
  findErased,
  findRestorable,
  findTouching,
  listDeadLetters,
  type RestorableBooking,
  readBookings,
  readLogHorizon,
} from "@booking-events/store";
import { type ActingContext, recordAction } from "../actions/record-action.ts";
import { keysOf } from "../bookings/booking-keys.ts";
import { requireBookings } from "../bookings/require-bookings.ts";
import type { Context, Pool } from "../context.ts";
import { toSeconds } from "../describe.ts";
import { OperationFailure, stopIfCancelled } from "../operation-failure.ts";
import { withRoom } from "../queue/queue-events.ts";
import { readSnapshot, withDatabase } from "../services/database.ts";
import { readKey } from "../services/digest-key.ts";
import { readRedisSettings, withRedis } from "../services/queue.ts";
import { requireSameDatabase } from "../services/require-same-database.ts";
import { type PlannedBooking, payloadOf, planBooking, type Reason, type RestoreRule } from "./plan-restore.ts";
import { type RestoreResults, RestoreRun } from "./restore-run.ts";

export interface RestoreRequest {
  partner: string;
  /** Empty: all bookings that events have changed since. */
  references: string[];
  /** Undefined: either. */
  referenceKind?: ReferenceKind | undefined;
  /** Only bookings that events by this secret have changed since. */
  secret?: string | undefined;
  /** A time of receipt. */
  at: Date;
  /** Also deletes bookings that have come since. */
  deleteNew: boolean;
  /** Bookings that later events have changed are left as they are. Undefined: when this begins. */
  unlessChangedSince?: Date | undefined;
}

export interface RestoreProgress {
  /** Called for each booking, once it is decided what becomes of it. */
  plan: (booking: PlannedBooking) => void;
  count: (what: "queued" | "known", by: number) => void;
  wait: (shortage: { reason: string; advice: string }) => void;
  /** Ends the work. What was queued until then is applied. */
  signal?: AbortSignal | undefined;
}

export interface Restored {
  /** When the bookings were read, as a place in the order of receipt. What was received later is left as it is. */
  readAt: Date;
  /** Where the log begins. Null: it has everything. */
  logBegins: Date | null;
  /** Null: nothing was queued, since only the preview was wanted. */
  results: RestoreResults | null;
}

/** A page of bookings, with what they hold now and held then, is in memory at a time. */
const bookingsTogether = 100;
const eventsReadTogether = 2_000;
/** Their keys are in memory. */
const maxBookings = 500_000;
/** The partner's bookings that have events in the queue are in memory. */
const maxInQueue = 200_000;

/**
 * Puts bookings back to what they were at a time of receipt, by new events, which take the ordinary way.
 *
 * The events' place in the order of receipt is reserved before anything is read. So whatever a partner sends from then
 * on comes after them, and wins, however late they are applied. What was received before that is in the queue, or in the
 * database, which are read in this order. Bookings with events in the queue are left as they are.
 *
 * If this is interrupted, it can be run again: what was restored is as it was, and what is in the queue is left alone.
 * If two run at once, their events have the same idempotency keys, and count once.
 *
 * @throws OperationFailure if Redis or PostgreSQL is unavailable. What was queued until then is applied
 */
export async function restoreBookings(
  context: ActingContext,
  request: RestoreRequest,
  progress: RestoreProgress,
): Promise<Restored> {
  const { references, partner, secret: secretId, at, deleteNew, unlessChangedSince } = request;
  await requireNamed(context, request);
  // References may name guests.
  const named = references.length === 0 ? "all" : references.length;
  const given = { partner, bookings: named, secretId, at, deleteNew, unlessChangedSince };
  return recordAction(context, { command: "bookings restore", arguments: given }, async (record) => {
    const did = { queued: 0 };
    record.did = did;
    const count: RestoreProgress["count"] = (what, by) => {
      if (what === "queued") did.queued += by;
      progress.count(what, by);
    };
    const restored = await restore(context, request, { isDryRun: false, progress: { ...progress, count } });
    record.did = restored.results ?? did;
    return restored;
  });
}

/** Tells what a restore would do. */
export async function planRestore(
  context: Context,
  request: RestoreRequest,
  progress: RestoreProgress,
): Promise<Restored> {
  await requireNamed(context, request);
  return restore(context, request, { isDryRun: true, progress });
}

async function restore(
  context: Context,
  request: RestoreRequest,
  { isDryRun, progress }: { isDryRun: boolean; progress: RestoreProgress },
): Promise<Restored> {
  const isTest = context.isTest === true;
  return withDatabase(context, async (pool) => {
    const restoreIn = async (run: RestoreRun | null): Promise<Restored> => {
      const place = await withRedis(context, (settings) => reservePlace(settings, !isDryRun));
      const inQueue = await findInQueue(context, request.partner);
      const rule = toRule(request, place, { inQueue, isTest });
      for await (const page of readPages(context, pool, request, { progress, inQueue })) {
        stopIfCancelled(progress.signal);
        const events: NumberedEvent[] = [];
        for (const booking of await describePage(pool, page)) {
          const { action, reason } = planBooking(booking, rule);
          progress.plan({ ...toPlanned(booking), action, reason });
          if (action !== null) events.push(toEvent(booking, action, { place, at: request.at, isTest }));
        }
        await run?.queue(events, progress);
      }
      return {
        readAt: new Date(Math.floor(place / 1_000)),
        logBegins: await readLogHorizon(pool),
        results: run === null ? null : await run.waitForResults(progress.signal),
      };
    };
    if (isDryRun) return restoreIn(null);
    return withRoom(context, pool, "restore", (queue) => restoreIn(new RestoreRun(pool, queue)));
  });
}

/** What names nothing is not recorded: it may be a guest's reference, or the secret itself. */
async function requireNamed(context: Context, { partner, secret, at }: RestoreRequest): Promise<void> {
  await withDatabase(context, async (pool) => {
    await requireSameDatabase(context, pool);
    await requireBookings(pool, partner);
    if (secret === undefined) return;
    const sequence = at.getTime() * 1_000;
    const [found] = await findTouching(pool, { partner, secret, sequence, afterId: undefined, limit: 1 });
    if (found === undefined)
      throw new OperationFailure(
        `No event by this secret of ${partner} has changed a booking since ${toSeconds(at)}. See which secrets there ` +
          "are: ops partners list. Nothing was restored.",
      );
  });
}

/** @returns the subjects of the partner's bookings that have events in the queue */
async function findInQueue(context: Context, partner: string): Promise<Set<string>> {
  const queue = await openQueuedEvents(readRedisSettings(context.environment));
  try {
    const subjects = await withRedis(context, () => queue.findSubjects(partner, maxInQueue));
    if (subjects !== null) return subjects;
  } finally {
    queue.close();
  }
  throw new OperationFailure(
    `Events of more than ${maxInQueue} bookings of ${partner} wait in the queue. Wait until they have been applied: ` +
      "see ops status. Nothing was restored.",
  );
}

function toRule(
  request: RestoreRequest,
  place: number,
  { inQueue, isTest }: { inQueue: Set<string>; isTest: boolean },
): RestoreRule {
  const { deleteNew, unlessChangedSince } = request;
  const seenUntil = unlessChangedSince === undefined ? place : unlessChangedSince.getTime() * 1_000;
  return {
    deleteNew,
    seenUntil: Math.min(place, seenUntil),
    isInQueue: (booking) => inQueue.has(subjectOf(booking.partner, booking.reference, isTest)),
  };
}

/** Reads the bookings in question, some at a time. Each page is of one moment. */
async function* readPages(
  context: Context,
  pool: Pool,
  request: RestoreRequest,
  watch: Watch,
): AsyncGenerator<RestorableBooking[]> {
  const { secret } = request;
  const sequence = request.at.getTime() * 1_000;
  const keys = request.references.length > 0 ? keysOfReferences(context, pool, request, watch) : touched(pool, request);
  for await (const page of keys)
    yield readSnapshot(pool, (client) => findRestorable(client, page, { sequence, secret }));
}

interface Watch {
  progress: RestoreProgress;
  /** Their subjects, which bookings of both kinds share. */
  inQueue: Set<string>;
}

/** @yields the keys of the bookings that exist. The others are planned at once */
async function* keysOfReferences(
  context: Context,
  pool: Pool,
  { partner, references, referenceKind, secret, at }: RestoreRequest,
  { progress, inQueue }: Watch,
): AsyncGenerator<Buffer[]> {
  const key = await readKey(context, pool);
  const wanted = secret === undefined ? undefined : await collectTouched(pool, { partner, secret, at });
  const distinct = [...new Set(references)];
  for (let from = 0; from < distinct.length; from += bookingsTogether / 2) {
    const some = distinct.slice(from, from + bookingsTogether / 2);
    const keysOfEach = some.map((reference) => ({ reference, keys: keysOf(partner, reference, referenceKind) }));
    const all = keysOfEach.flatMap(({ keys }) => keys);
    const found = (await readBookings(pool, { bookingKeys: all, limit: all.length })).map(
      (booking) => booking.bookingKey,
    );
    yield found.filter((each) => wanted === undefined || wanted.has(each.toString("hex")));
    const none = { action: null, changedFields: [], changesOfOthers: 0, deadLetters: 0 };
    for (const { reference, keys } of keysOfEach) {
      if (keys.some((one) => found.some((other) => one.equals(other)))) continue;
      const reason = await findReason(pool, key, keys, inQueue.has(subjectOf(partner, reference, context.isTest)));
      progress.plan({ partner, referenceKind: referenceKind ?? null, reference, reason, ...none });
    }
  }
}

async function findReason(pool: Pool, key: DigestKey, keys: Buffer[], isInQueue: boolean): Promise<Reason> {
  if (isInQueue) return "in-queue";
  return (await findErased(pool, key, keys)).size > 0 ? "erased" : "unknown";
}

async function collectTouched(pool: Pool, request: Pick<RestoreRequest, "partner" | "secret" | "at">) {
  const keys = new Set<string>();
  for await (const page of touched(pool, request)) for (const key of page) keys.add(key.toString("hex"));
  return keys;
}

/** @yields the keys of bookings that events have changed since, each once */
async function* touched(
  pool: Pool,
  { partner, secret, at }: Pick<RestoreRequest, "partner" | "secret" | "at">,
): AsyncGenerator<Buffer[]> {
  const seen = new Set<string>();
  let afterId: string | undefined;
  do {
    const filter = { partner, secret, sequence: at.getTime() * 1_000, afterId, limit: eventsReadTogether };
    const events = await findTouching(pool, filter);
    const fresh = events.map(({ bookingKey }) => bookingKey).filter((key) => addNew(seen, key.toString("hex")));
    if (seen.size > maxBookings)
      throw new OperationFailure(
        `More than ${maxBookings} bookings of ${partner} have changed since ${toSeconds(at)}. Give references.`,
      );
    for (let from = 0; from < fresh.length; from += bookingsTogether) yield fresh.slice(from, from + bookingsTogether);
    afterId = events.length < eventsReadTogether ? undefined : events.at(-1)?.id;
  } while (afterId !== undefined);
}

function addNew(set: Set<string>, value: string): boolean {
  return set.size < set.add(value).size;
}

type Described = RestorableBooking & { deadLetters: number };

/** Counts the open dead letters of each booking. */
async function describePage(pool: Pool, page: RestorableBooking[]): Promise<Described[]> {
  const [first] = page;
  if (first === undefined) return [];
  const letters = await listDeadLetters(pool, {
    partner: first.partner,
    references: page.map(({ reference }) => reference),
  });
  return page.map((booking) => ({
    ...booking,
    deadLetters: letters.filter(
      ({ reference, referenceKind }) =>
        reference === booking.reference && (referenceKind ?? booking.referenceKind) === booking.referenceKind,
    ).length,
  }));
}

function toPlanned(booking: Described): Omit<PlannedBooking, "action" | "reason"> {
  const { partner, referenceKind, reference, changedFields, changesOfOthers, deadLetters } = booking;
  return { partner, referenceKind, reference, changedFields, changesOfOthers, deadLetters };
}

/**
 * An event without a secret is the operator's. Its key says what it undoes: up to which event, and to which time. So the
 * same restore twice is one event, and a partner's update with the same content is none.
 */
function toEvent(
  booking: RestorableBooking,
  action: "update" | "delete",
  { place, at, isTest }: { place: number; at: Date; isTest: boolean },
): NumberedEvent {
  const { partner, lastSequence, defaultCountryThen } = booking;
  return {
    eventId: createRestoreId(booking, place),
    kind: action,
    partner,
    sequence: place,
    receivedAt: new Date(Math.floor(place / 1_000)).toISOString(),
    idempotencyKey: `restore-${lastSequence}-to-${at.getTime()}`,
    ...(defaultCountryThen === null ? {} : { defaultCountry: defaultCountryThen }),
    ...(isTest && { test: isTest }),
    payload: payloadOf(action, booking),
  };
}

/** A UUIDv7 of the place's time. What follows is a digest of the booking and the place, where others are random. */
function createRestoreId({ bookingKey }: RestorableBooking, place: number): string {
  const time = Math.floor(place / 1_000)
    .toString(16)
    .padStart(12, "0");
  const digest = hash("sha256", Buffer.concat([Buffer.from(`restore\0${place}\0`), bookingKey]), "hex");
  return `${time.slice(0, 8)}-${time.slice(8)}-7${digest.slice(0, 3)}-8${digest.slice(3, 6)}-${digest.slice(6, 18)}`;
}
