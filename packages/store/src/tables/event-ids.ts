import type { BookingState } from "@booking-events/bookings";

const day = 24 * 60 * 60 * 1_000;
/** An id has the time of one ingest's clock. Other times are of other clocks. */
const clockSkewMs = day;

const longestTime = 2 ** 48 - 1;

/** The smallest UUIDv7 of that time (RFC 9562): its first 48 bits are the milliseconds since 1970. */
export function firstIdAt(time: Date): string {
  if (time.getTime() > longestTime) return "ffffffff-ffff-ffff-ffff-ffffffffffff";
  const hex = time.getTime().toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`;
}

/** @returns the milliseconds since 1970 with which the UUIDv7 begins */
export function timeOfId(id: string): number {
  return Number.parseInt(id.replace("-", "").slice(0, 12), 16);
}

/** @returns an id that none of the booking's events is before */
export function firstIdOfBooking({ createdAt, eventId, content }: BookingState): string {
  const known = content === null ? [eventId] : [eventId, content.eventId];
  return firstIdToSearch(Math.min(createdAt.getTime(), ...known.map(timeOfId)));
}

/**
 * @returns an id that no event of the period before the event is before
 * @param event.sequence in microseconds since 1970
 */
export function firstIdInPeriod(event: { id: string; sequence: number }, periodMs: number): string {
  return firstIdToSearch(Math.min(event.sequence / 1_000, timeOfId(event.id)) - periodMs);
}

/**
 * PostgreSQL knows the smallest bound before it runs the query, and leaves out partitions. With the bound of each lookup,
 * it skips more of them meanwhile.
 */
export function boundIds(lookups: { firstId?: string | undefined }[]): [smallest: string, ofEach: string[]] {
  const ofEach = lookups.map(({ firstId = firstIdAt(new Date(0)) }) => firstId);
  return [ofEach.toSorted()[0] ?? firstIdAt(new Date(0)), ofEach];
}

/** @returns the ids with which the months of all of the ids begin, and those after them */
export function monthsOfIds(ids: string[]): [first: string, end: string] {
  const times = ids.map(timeOfId);
  const [first, last] = [new Date(Math.min(...times)), new Date(Math.max(...times))];
  if (ids.length === 0) return [firstIdAt(new Date(0)), firstIdAt(new Date(0))];
  return [startOfMonth(first, 0), startOfMonth(last, 1)];
}

function startOfMonth(time: Date, monthsLater: number): string {
  return firstIdAt(new Date(Date.UTC(time.getUTCFullYear(), time.getUTCMonth() + monthsLater)));
}

/**
 * With this bound, PostgreSQL skips partitions. It is the start of a month, so within a partition the bound excludes
 * nothing, and never looks like a good reason to use the primary key.
 */
function firstIdToSearch(timeMs: number): string {
  return startOfMonth(new Date(Math.max(timeMs - clockSkewMs, 0)), 0);
}
