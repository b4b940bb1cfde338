import { hash } from "node:crypto";
import { type BookingPlan, type PlannedChange, planBooking, toCanonicalJson } from "@booking-events/bookings";
import { parseJson } from "@booking-events/schema";
import {
  appendChanges,
  type DigestKey,
  inTransaction,
  lockBookings,
  type PlannedBooking,
  type Queryable,
  readBookings,
  readLogged,
  readLogHorizon,
  reviseEvents,
  type StoredBooking,
  updateBookings,
} from "@booking-events/store";
import type { Pool } from "../context.ts";
import { readSnapshot } from "../services/database.ts";
import { type Verification, verifyTogether } from "./verify-booking.ts";

/** What a repair does, or would do. */
export interface Repair extends Omit<Verification, "events" | "isOlderThanLog"> {
  bookingId: string;
  /** The row for readers of the feed; null: nothing that they know changes. */
  change: string | null;
  revision: number;
  eventId: string;
  /** How many events get another outcome or state. */
  revised: number;
  /** Why nothing can be done, as a sentence; null: it can. */
  refused: string | null;
}

/**
 * Folds a booking's log again, and stores what the fold says: the events' outcomes and states, the booking, and a change
 * for readers of the feed, in one transaction that holds the booking's lock. Workers wait for it meanwhile, or apply
 * the booking's events later.
 *
 * @param isDryRun only says what it would do
 * @returns null: the booking agrees with its log, or was erased
 */
export async function repairBooking(
  pool: Pool,
  bookingKey: Buffer,
  { duplicateWindowMs, isDryRun, digestKey }: { duplicateWindowMs: number; isDryRun: boolean; digestKey: DigestKey },
): Promise<Repair | null> {
  // What is only read must be of one moment: workers apply events meanwhile.
  const inOneTransaction = isDryRun ? readSnapshot : inTransaction;
  return inOneTransaction(pool, async (client) => {
    // Before the log is read, or a worker could add to it in between.
    if (!isDryRun) await lockBookings(client, [bookingKey]);
    const [booking] = await readBookings(client, { bookingKeys: [bookingKey], limit: 1 });
    if (booking === undefined) return null;
    const horizon = await readLogHorizon(client);
    const [verified] = await verifyTogether(client, [booking], { duplicateWindowMs, horizon });
    if (verified === undefined || verified.verification.differences.length === 0) return null;
    const { refolding, verification, hasWrongPayload } = verified;
    const { partner, referenceKind, reference, differences } = verification;
    const described = { bookingId: booking.bookingId, partner, referenceKind, reference, differences };
    const refuse = (refused: string): Repair => {
      const { revision, state } = booking;
      return { ...described, change: null, revision, eventId: state.eventId, revised: 0, refused };
    };
    if (typeof refolding === "string") return refuse(refolding);
    const plan = planBooking(
      { stored: booking.state, feedEventId: booking.feedEventId, events: [] },
      { refolding, creates: new Map(), duplicateWindowMs },
    );
    const payload = await findPayload(client, booking, plan);
    if (payload === "none" && plan.state.state === "active")
      return refuse("By its log it is active, but its content has been removed. Have the partner send it again.");
    // Of two contents that differ, the digest tells which one is right.
    if (hasWrongPayload && payload === "logged" && !(await isLoggedAsSent(client, plan, digestKey)))
      return refuse("Its content was changed in the log, too. Restore a backup, or have the partner send it again.");
    const changes = hasWrongPayload ? tellContent(booking, plan) : plan.changes;
    if (!isDryRun) await write(client, booking, { ...plan, changes }, payload === "stored" ? "kept" : "logged");
    return {
      ...described,
      change: changes[0]?.change ?? null,
      revision: booking.revision + changes.length,
      eventId: plan.state.eventId,
      revised: plan.revised.length,
      refused: null,
    };
  });
}

/**
 * Finds where the content is: the log has it, unless it is old, or the booking was deleted and its content and that of
 * all its events removed.
 */
async function findPayload(
  client: Queryable,
  { bookingKey }: StoredBooking,
  { state, keepsContent }: BookingPlan,
): Promise<"logged" | "stored" | "none"> {
  const { rows } = await client.query<{ isLogged: boolean; isStored: boolean }>(
    `select exists (select from booking_events where id = $1 and payload is not null) as "isLogged",
       exists (select from bookings where booking_key = $2 and payload is not null) as "isStored"`,
    [state.content?.eventId ?? null, bookingKey],
  );
  const [found] = rows;
  if (found?.isLogged) return "logged";
  return found?.isStored && keepsContent ? "stored" : "none";
}

async function isLoggedAsSent(client: Queryable, { state: { content } }: BookingPlan, key: DigestKey) {
  const { rows } = await client.query<{ payload: string }>(
    "select payload::text as payload from booking_events where id = $1 limit 1",
    [content?.eventId],
  );
  const canonical = toCanonicalJson(parseJson(rows[0]?.payload ?? "null"));
  return key.digestContent(hash("sha256", canonical, "hex")) === content?.digest;
}

/** Readers of the feed that took the booking from a snapshot have the wrong content. */
function tellContent({ feedEventId }: StoredBooking, { state, changes }: BookingPlan): PlannedChange[] {
  if (changes.length > 0 || state.state === "deleted") return changes;
  return [{ change: "updated", eventId: state.eventId, sequence: state.sequence, previousEventId: feedEventId }];
}

/** In the order of a worker's transaction. */
async function write(
  client: Queryable,
  booking: StoredBooking,
  plan: BookingPlan,
  newContent: PlannedBooking["newContent"],
): Promise<void> {
  const { bookingKey, bookingId, partner, referenceKind, reference } = booking;
  const identity = { bookingKey, bookingId, partner, referenceKind, reference };
  const revision = booking.revision + plan.changes.length;
  if (plan.revised.length > 0) await reviseEvents(client, plan.revised);
  await updateBookings(client, await readLogged(client, [{ ...identity, state: plan.state, revision, newContent }]));
  if (plan.changes.length === 0) return;
  await appendChanges(
    client,
    plan.changes.map((change) => ({ bookingId, partner, referenceKind, reference, revision, ...change })),
  );
}
