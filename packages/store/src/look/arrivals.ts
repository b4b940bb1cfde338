import {
  arrivalDayOf,
  bookingReferenceOf,
  type EventEnvelope,
  type ReferenceKind,
  referenceKindOf,
} from "@booking-events/schema";
import type { Queryable } from "../connect/queryable.ts";
import { bookingKey } from "../tables/booking-key.ts";

/** Guests who arrive from now on, until a time. */
export interface ArrivalWindow {
  now: Date;
  until: Date;
  /** Only of this partner. Undefined: of all. */
  partner?: string | undefined;
}

/** In which guests count who arrive, unless another time is chosen. */
export const arrivalWindowMs = 48 * 60 * 60 * 1_000;

export interface ArrivalCounts {
  /** Bookings of guests who arrive, and bookings that are only in dead letters. */
  arriving: number;
  /** Of these, those with an open dead letter that is newer than what was applied. */
  dead: number;
  /** Those whose phone number or e-mail address can't be read. */
  unreadable: number;
  /** Those with either. */
  unresolved: number;
}

/** A booking of a guest who arrives, or who might. */
export interface Arrival {
  partner: string;
  referenceKind: ReferenceKind;
  reference: string;
  /** Null: no event of the booking was applied. */
  bookingId: string | null;
  /** As the partner wrote it. Null: the booking names none. */
  arrivalDay: string | null;
  /** Null: the partner has sent a day alone, or a time without its zone. */
  arrivalAt: Date | null;
  destinationCountry: string | null;
  destinationAirport: string | null;
  /** When the newest event that was applied was received. Null: none was. */
  appliedUntil: Date | null;
  /** The place of that event in the order of receipt. */
  lastSequence: number | null;
  /** The booking, as it is applied, says that the guest arrives within the window. */
  isArriving: boolean;
  /** Fields whose values can't be read. */
  unreadable: string[];
  /** Open dead letters that are newer than what was applied. */
  letters: ArrivalLetter[];
}

export interface ArrivalLetter {
  eventId: string;
  kind: string | null;
  sequence: number;
  /** By the event. */
  arrivalDay: string | null;
  errorCode: string;
  failedAt: Date;
}

/** How guests are reached. What else can't be read does not make a booking unresolved. */
export const fieldsToReach = ["consumerPhone", "consumerEmail"] as const;

/** The fields that matter when a guest arrives, with the column of bookings that is null if the value can't be read. */
const neededFields = {
  consumerPhone: "consumer_phone",
  consumerEmail: "consumer_email",
  consumerTripDestinationCountryName: "consumer_trip_destination_country_code",
  consumerTripDestinationAirportCode: "consumer_trip_destination_airport_code",
  agentPhoneNumber: "agent_phone_number",
  agentEmail: "agent_email",
} as const;

/** A text without a letter or a digit is no value that could be read. The column is looked at first: most can be read. */
const isUnread = (field: keyof typeof neededFields) =>
  `(booking.${neededFields[field]} is null and booking.payload ->> '${field}' collate "C" ~ '[0-9A-Za-z]')`;

const isContactUnread = fieldsToReach.map(isUnread).join(" or ");

/**
 * A day alone counts from its beginning in the easternmost time zone to its end in the westernmost one. $1 and $2 are the
 * window, $3 the partner.
 */
const firstDay = "($1::timestamptz at time zone 'UTC' - interval '12 hours')::date";
const lastDay = "($2::timestamptz at time zone 'UTC' + interval '14 hours')::date";
const isArriving = `booking.state = 'active' and booking.consumer_trip_arrival_date between ${firstDay} and ${lastDay}
       and (booking.consumer_trip_arrival_at is null or booking.consumer_trip_arrival_at between $1 and $2)
       and ($3::text is null or booking.partner = $3)`;

/** What is older than what was applied is settled: each event says all of a booking. */
const newerLetters = `select letter.* from dead_letters as letter
       where letter.resolved_at is null and letter.reference = booking.reference and letter.partner = booking.partner
         and letter.reference_kind = booking.reference_kind and letter.sequence > booking.last_sequence`;

/** Letters of guests who arrive, by the letter, and of no booking that does. */
const lonelyLetters = `select letter.*, booking.booking_id, booking.last_sequence
     from dead_letters as letter
     left join lateral (
       select * from bookings
       where reference = letter.reference and partner = letter.partner and reference_kind = letter.reference_kind
       limit 1
     ) as booking on true
     where letter.resolved_at is null and letter.consumer_trip_arrival_date between ${firstDay} and ${lastDay}
       and letter.sequence is not null and ($3::text is null or letter.partner = $3)
       and (booking.booking_key is null or (letter.sequence > booking.last_sequence and (${isArriving}) is not true))`;

/** Counts the guests who arrive, and those of whom something is unresolved, as far as PostgreSQL knows. */
export async function countArrivals(client: Queryable, window: ArrivalWindow): Promise<ArrivalCounts> {
  return (await chooseArrivals(client, window, 1)).counts;
}

/**
 * Lists guests who arrive, in no order: by their bookings, up to a limit, first those of whom something is unresolved, and
 * then by arrival; and up to as many of whom only a dead letter tells.
 */
export async function listArrivals(
  client: Queryable,
  window: ArrivalWindow,
  limit: number,
): Promise<{ counts: ArrivalCounts; arrivals: Arrival[] }> {
  const { counts, keys } = await chooseArrivals(client, window, limit);
  const lonely = await listLonely(client, window, limit);
  const found = new Map(
    (await findArrivalsOf(client, window, keys)).map((row) => [row.bookingKey.toString("hex"), row]),
  );
  const bookings = keys.flatMap((key) => found.get(key.toString("hex")) ?? []);
  return { counts, arrivals: [...lonely, ...bookings] };
}

/** What the bookings hold is read of those alone that are chosen. */
async function chooseArrivals(
  client: Queryable,
  window: ArrivalWindow,
  limit: number,
): Promise<{ counts: ArrivalCounts; keys: Buffer[] }> {
  const { rows } = await client.query<ArrivalCounts & { bookingKey: Buffer }>(
    `with flags as materialized (
       select booking.booking_key, booking.consumer_trip_arrival_date as day, booking.consumer_trip_arrival_at as at,
         exists (${newerLetters}) as is_dead, (${isContactUnread}) is true as is_unread
       from bookings as booking
       where ${isArriving}
     )
     select booking_key as "bookingKey", (count(*) over ())::int as arriving,
       (count(*) filter (where is_dead) over ())::int as dead,
       (count(*) filter (where is_unread) over ())::int as unreadable,
       (count(*) filter (where is_dead or is_unread) over ())::int as unresolved
     from flags
     order by (is_dead or is_unread) desc, day, at, booking_key
     limit $4`,
    [...toParameters(window), limit],
  );
  const { arriving, dead, unreadable, unresolved } = rows[0] ?? { arriving: 0, dead: 0, unreadable: 0, unresolved: 0 };
  const lonely = await countLonely(client, window);
  return {
    counts: { arriving: arriving + lonely, dead: dead + lonely, unreadable, unresolved: unresolved + lonely },
    keys: rows.map(({ bookingKey }) => bookingKey),
  };
}

async function countLonely(client: Queryable, window: ArrivalWindow): Promise<number> {
  const { rows } = await client.query<{ count: number }>(
    `select count(distinct (partner, reference_kind, reference))::int as count from (${lonelyLetters}) as letters`,
    toParameters(window),
  );
  return rows[0]?.count ?? 0;
}

/** An event that is not applied yet. */
export interface WaitingWord {
  partner: string;
  referenceKind: ReferenceKind;
  reference: string;
  sequence: number;
  /** By the event. */
  arrivalDay: string | null;
}

export function toWaitingWord({ partner, sequence, payload }: EventEnvelope): WaitingWord {
  const booking = { partner, referenceKind: referenceKindOf(payload), reference: bookingReferenceOf(payload) };
  return { ...booking, sequence, arrivalDay: arrivalDayOf(payload) };
}

/** An event takes less than a second, unless something is wrong. */
const waitsLongMs = 60_000;

/** The sequence is the time of receipt in microseconds, or later by very little. */
export function waitsLong({ sequence }: Pick<WaitingWord, "sequence">, now: Date): boolean {
  return now.getTime() - sequence / 1_000 > waitsLongMs;
}

/**
 * Finds the guests who arrive, by what is applied or by what waits, for whom something waits that is newer than what was
 * applied.
 */
export async function findWaitingArrivals<Word extends WaitingWord>(
  client: Queryable,
  window: ArrivalWindow,
  words: Word[],
): Promise<WaitingArrival<Word>[]> {
  const byBooking = Map.groupBy(words, nameArrival);
  const bookings = [...byBooking.values()].map(([word]) => word as Word);
  const stored = await findArrivalsOf(client, window, bookings.map(keyOf));
  const known = new Map(stored.map((arrival) => [nameArrival(arrival), arrival]));
  const letters = await findLettersOf(
    client,
    bookings.filter((booking) => !known.has(nameArrival(booking))),
  );
  return [...byBooking].flatMap(([name, ofBooking]) => {
    const arrival = known.get(name) ?? toUnknown(ofBooking[0] as Word, letters.get(name));
    const newer = ofBooking.filter(({ sequence }) => sequence > (arrival.lastSequence ?? 0));
    const isCounted = arrival.isArriving || arrival.letters.some(({ arrivalDay }) => isDayWithin(window, arrivalDay));
    const arrives = isCounted || newer.some(({ arrivalDay }) => isDayWithin(window, arrivalDay));
    return arrives && newer.length > 0 ? [{ arrival, isCounted, words: newer }] : [];
  });
}

export interface WaitingArrival<Word> {
  arrival: Arrival;
  /** {@link countArrivals} counts it, too. */
  isCounted: boolean;
  words: Word[];
}

/** Of bookings of which nothing was applied. */
async function findLettersOf(client: Queryable, bookings: WaitingWord[]): Promise<Map<string, ArrivalLetter[]>> {
  const { rows } = await client.query<ArrivalLetter & Pick<WaitingWord, "partner" | "referenceKind" | "reference">>(
    `select partner, reference_kind as "referenceKind", reference, ${letterColumns}
     from dead_letters
     where resolved_at is null and sequence is not null and reference = any($1)
     order by sequence desc`,
    [bookings.map(({ reference }) => reference)],
  );
  return Map.groupBy(rows, nameArrival);
}

const letterColumns = `event_id as "eventId", kind, sequence, consumer_trip_arrival_date::text as "arrivalDay",
       error_code as "errorCode", failed_at as "failedAt"`;

export function nameArrival({
  partner,
  referenceKind,
  reference,
}: Pick<WaitingWord, "partner" | "referenceKind" | "reference">) {
  return `${partner} ${referenceKind} ${reference}`;
}

function keyOf({ partner, referenceKind, reference }: WaitingWord): Buffer {
  return bookingKey(partner, referenceKind, reference);
}

/** No event of the booking was applied. */
function toUnknown(
  { partner, referenceKind, reference, arrivalDay }: Omit<WaitingWord, "sequence">,
  letters: ArrivalLetter[] = [],
): Arrival {
  return {
    partner,
    referenceKind,
    reference,
    bookingId: null,
    arrivalDay,
    arrivalAt: null,
    destinationCountry: null,
    destinationAirport: null,
    appliedUntil: null,
    lastSequence: null,
    isArriving: false,
    unreadable: [],
    letters: letters.map(toLetter),
  };
}

const hourMs = 3_600_000;

/** As the queries do. */
function isDayWithin({ now, until }: ArrivalWindow, day: string | null): boolean {
  const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, "2026-11-20".length);
  return day !== null && day >= dayOf(now.getTime() - 12 * hourMs) && day <= dayOf(until.getTime() + 14 * hourMs);
}

/** Bookings that have been erased say nothing of a guest. */
async function findArrivalsOf(
  client: Queryable,
  window: ArrivalWindow,
  bookingKeys: Buffer[],
): Promise<(Arrival & { bookingKey: Buffer })[]> {
  const unreadable = Object.keys(neededFields).map(
    (field) => `case when ${isUnread(field as keyof typeof neededFields)} then '${field}' end`,
  );
  const { rows } = await client.query<StoredArrival>(
    `select booking_key as "bookingKey", partner, reference_kind as "referenceKind", reference,
       booking_id as "bookingId", consumer_trip_arrival_date::text as "arrivalDay",
       consumer_trip_arrival_at as "arrivalAt", consumer_trip_destination_country_code as "destinationCountry",
       consumer_trip_destination_airport_code as "destinationAirport",
       to_timestamp(last_sequence / 1e6) as "appliedUntil", last_sequence as "lastSequence",
       (${isArriving}) is true as "isArriving",
       array_remove(array[${unreadable.join(", ")}], null) as unreadable, letters
     from bookings as booking
     cross join lateral (
       select coalesce(json_agg(json_build_object('eventId', event_id, 'kind', kind, 'sequence', sequence,
         'arrivalDay', consumer_trip_arrival_date, 'errorCode', error_code, 'failedAt', failed_at) order by sequence desc), '[]') as letters
       from (${newerLetters} order by letter.sequence desc limit ${maxLetters}) as newest
     ) as letters
     where booking_key = any($4) and erased_at is null`,
    [...toParameters(window), bookingKeys],
  );
  return rows.map((row) => ({
    ...row,
    letters: row.letters.map((letter) => ({ ...letter, failedAt: new Date(letter.failedAt) })),
  }));
}

type StoredArrival = Arrival & { bookingKey: Buffer; letters: (ArrivalLetter & { failedAt: string })[] };

/** Of a booking. */
const maxLetters = 10;

interface LonelyLetter extends ArrivalLetter {
  partner: string;
  referenceKind: ReferenceKind;
  reference: string;
  bookingId: string | null;
  appliedUntil: Date | null;
  lastSequence: number | null;
}

async function listLonely(client: Queryable, window: ArrivalWindow, limit: number): Promise<Arrival[]> {
  const { rows } = await client.query<LonelyLetter>(
    `select partner, reference_kind as "referenceKind", reference, booking_id as "bookingId",
       to_timestamp(last_sequence / 1e6) as "appliedUntil", last_sequence as "lastSequence", ${letterColumns}
     from (${lonelyLetters}) as letters
     order by consumer_trip_arrival_date, sequence desc
     limit $4`,
    [...toParameters(window), limit],
  );
  return [...Map.groupBy(rows, nameArrival).values()].flatMap((letters) => {
    const [newest] = letters;
    if (newest === undefined) return [];
    const { bookingId, appliedUntil, lastSequence } = newest;
    return [{ ...toUnknown(newest, letters), bookingId, appliedUntil, lastSequence }];
  });
}

function toLetter({ eventId, kind, sequence, arrivalDay, errorCode, failedAt }: ArrivalLetter): ArrivalLetter {
  return { eventId, kind, sequence, arrivalDay, errorCode, failedAt };
}

function toParameters({ now, until, partner }: ArrivalWindow): unknown[] {
  return [now, until, partner ?? null];
}
