import type { Violation } from "./check.ts";
import type { ChangeRow, DatabaseContent } from "./read-database.ts";

/** What a subscriber has written down, and what it should have got. Times are of this machine's clock, in ms. */
export interface DeliveryEvidence {
  subscriptions: readonly SubscriptionEvidence[];
  database: Pick<DatabaseContent, "changes" | "log">;
  /** By booking: when it was known at the latest that its erasure had been committed. */
  erasedAtMs: ReadonlyMap<string, number>;
}

export interface SubscriptionEvidence {
  name: string;
  mode: "latest" | "every";
  /** Null: all. */
  partner: string | null;
  /** From one replay to the next, in the order in which they came. */
  epochs: readonly (readonly Received[])[];
  /** Who had the lease, in that order. */
  leases: readonly LeaseSeen[];
}

/** A request that a subscriber got. */
export interface Received {
  receivedAtMs: number;
  /** When it was answered, or its connection ended. */
  endedAtMs: number;
  /** `kept` and `forgotten`: with 2xx. */
  answer: "kept" | "forgotten" | "refused";
  /** When it was known at the latest that the deliverer had recorded it as done. */
  recordedAtMs: number | null;
  /** `webhook-timestamp`: when the attempt began, without its fraction of a second. */
  timestampMs: number;
  webhookId: string;
  isSigned: boolean;
  changeId: number;
  bookingId: string;
  partner: string;
  revision: number;
  change: string;
  /** Null: it says nothing of the guest, not even the reference. */
  eventId: string | null;
  /** As the partner sent it; null: nothing; undefined: the subscriber gets no contents. */
  content: string | null | undefined;
}

/** One that a process had; null: nobody. */
export interface LeaseSeen {
  token: string | null;
  /** When the process was known at the latest to have it. */
  fromMs: number;
  /** When it was last known to use it: to renew it or to record something. */
  usedAtMs: number;
}

/** A booking may have been read so long before the attempt begins that hands it over. */
const readBeforeMs = 1_000;
/**
 * What was accepted so long before a process last used its lease has been recorded. When PostgreSQL's machine dies, each of
 * its three connections may cost an attempt of 5 s, while another one renews the lease.
 */
const recordedAfterMs = 20_000;

/**
 * Compares what subscribers got with the feed. It knows nothing of how deliveries are made, only what is promised:
 *
 * - in `every` each change was accepted, in `latest` the last one; of an erased booking, its erasure
 * - of one booking, one request at a time, and after an accepted one none of the same or an earlier change. A process
 *   that loses its lease may have had some accepted that it could not record: these come again, but not if they were
 *   recorded, or accepted long before
 * - no attempt that begins after an erasure was committed says anything of the guest
 */
export function checkDeliveries({ subscriptions, database, erasedAtMs }: DeliveryEvidence): Violation[] {
  const changes = new Map(database.changes.map((row) => [row.id, row]));
  const contents = new Map(database.log.map(({ id, content }) => [id, content]));
  const erased = findErasures(subscriptions, erasedAtMs);
  return subscriptions.flatMap((subscription) => {
    const all = subscription.epochs.flat();
    const wrong = [
      ...all.flatMap((received) => findWrong(received, subscription, changes, contents)),
      ...findSharedIds(all),
      ...subscription.epochs.flatMap((epoch) => findOutOfTurn(epoch, subscription.leases)),
      ...findMissing(all, subscription, database.changes),
    ];
    return [
      ...wrong.map((what) => ({ kind: "wrong delivery" as const, what: `${subscription.name}: ${what}` })),
      ...findGuests(all, erased).map((what) => ({
        kind: "guest stays" as const,
        what: `${subscription.name}: ${what}`,
      })),
    ];
  });
}

function findErasures(
  subscriptions: readonly SubscriptionEvidence[],
  committedAtMs: ReadonlyMap<string, number>,
): ReadonlyMap<string, number> {
  const erased = new Map(committedAtMs);
  for (const { change, bookingId, receivedAtMs } of subscriptions.flatMap(({ epochs }) => epochs.flat()))
    if (change === "erased") erased.set(bookingId, Math.min(receivedAtMs, erased.get(bookingId) ?? receivedAtMs));
  return erased;
}

function findWrong(
  received: Received,
  { partner }: SubscriptionEvidence,
  changes: ReadonlyMap<number, ChangeRow>,
  contents: ReadonlyMap<string, string | null>,
): string[] {
  const { changeId, isSigned, content } = received;
  const row = changes.get(changeId);
  const isSame =
    row !== undefined &&
    row.bookingId === received.bookingId &&
    row.partner === received.partner &&
    row.revision === received.revision &&
    row.change === received.change;
  const isKnown = row !== undefined && row.reference !== null && received.eventId !== null;
  const expected = row?.change === "deleted" ? null : contents.get(row?.eventId ?? "");
  return [
    ...(isSigned ? [] : [`${describe(received)} is not signed`]),
    ...(isSame ? [] : [`${describe(received)} is not the change of the feed`]),
    ...(partner === null || received.partner === partner ? [] : [`${describe(received)} is of ${received.partner}`]),
    ...(isKnown && content !== undefined && content !== expected
      ? [`${describe(received)} has the content ${content}, not ${expected}`]
      : []),
    ...(isKnown && received.eventId !== row.eventId ? [`${describe(received)} is of another event`] : []),
  ];
}

/** A `webhook-id` names one change. */
function findSharedIds(all: readonly Received[]): string[] {
  return [...Map.groupBy(all, ({ webhookId }) => webhookId)].flatMap(([webhookId, same]) => {
    const ids = new Set(same.map(({ changeId }) => changeId));
    return ids.size === 1 ? [] : [`${webhookId} is the id of the changes ${[...ids].join(", ")}`];
  });
}

function findOutOfTurn(epoch: readonly Received[], leases: readonly LeaseSeen[]): string[] {
  return [...Map.groupBy(epoch, ({ bookingId }) => bookingId).values()].flatMap((ofBooking) =>
    ofBooking.flatMap((later, index) => {
      const reasons = ofBooking.slice(0, index).flatMap((earlier) => findFault(earlier, later, leases) ?? []);
      return reasons.slice(0, 1);
    }),
  );
}

/** @returns why the later request should not have come as it did */
function findFault(earlier: Received, later: Received, leases: readonly LeaseSeen[]): string | undefined {
  const isOpen = earlier.endedAtMs > later.receivedAtMs;
  const isDone = earlier.answer !== "refused" && earlier.changeId >= later.changeId;
  if (!isOpen && !isDone) return undefined;
  // One that began before may arrive after, if its process was frozen or ended meanwhile.
  const fromMs = Math.min(earlier.receivedAtMs, later.timestampMs);
  const losses = toLosses(leases).filter((loss) => loss.toMs >= fromMs && loss.fromMs <= later.receivedAtMs);
  const both = `${describe(later)} came after ${describe(earlier)}`;
  if (losses.length === 0) return `${both}, which was ${isDone ? "accepted" : "under way"}, by the same process`;
  if (!isDone) return undefined;
  if (earlier.recordedAtMs !== null && later.timestampMs - readBeforeMs > earlier.recordedAtMs)
    return `${both}, which was recorded as done`;
  if (losses.every((loss) => loss.fromMs > earlier.receivedAtMs + recordedAfterMs))
    return `${both}, which was accepted long before its process fell silent`;
  return undefined;
}

/** Within which time each lease was lost. */
function toLosses(leases: readonly LeaseSeen[]): { fromMs: number; toMs: number }[] {
  return leases.flatMap((next, index) => {
    const before = leases[index - 1];
    return before === undefined ? [] : [{ fromMs: before.usedAtMs, toMs: next.fromMs }];
  });
}

function findMissing(
  all: readonly Received[],
  { mode, partner }: SubscriptionEvidence,
  changes: readonly ChangeRow[],
): string[] {
  const kept = new Set(all.filter(({ answer }) => answer === "kept").map(({ changeId }) => changeId));
  const wanted = changes.filter((row) => partner === null || row.partner === partner);
  return [...Map.groupBy(wanted, ({ bookingId }) => bookingId).values()].flatMap((ofBooking) => {
    const last = ofBooking.slice(-1);
    const due = mode === "latest" || last[0]?.change === "erased" ? last : ofBooking;
    return due
      .filter(({ id }) => !kept.has(id))
      .map(({ id, bookingId, change }) => `the change ${id} (${change}) of ${bookingId} is missing`);
  });
}

function findGuests(all: readonly Received[], erasedAtMs: ReadonlyMap<string, number>): string[] {
  return all
    .filter(({ eventId }) => eventId !== null)
    .filter(
      ({ bookingId, timestampMs }) =>
        timestampMs - readBeforeMs > (erasedAtMs.get(bookingId) ?? Number.POSITIVE_INFINITY),
    )
    .map((received) => `${describe(received)} began after its booking was erased`);
}

function describe({ changeId, bookingId, change, timestampMs }: Received): string {
  return `the change ${changeId} (${change}) of ${bookingId}, begun at ${new Date(timestampMs).toISOString()}`;
}
