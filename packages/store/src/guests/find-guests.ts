import type { BookingFieldName } from "@booking-events/schema";
import type pg from "pg";
import type { Queryable } from "../connect/queryable.ts";
import { inTransaction } from "../connect/transaction.ts";
import { allowLongStatements } from "../connect/transaction-limits.ts";
import { bookingKey, consumerHash } from "../tables/booking-key.ts";
import type { SentContent } from "../tables/content-columns.ts";
import type { BookingToErase } from "./booking-to-erase.ts";
import type { DigestKey } from "./digest-key.ts";
import { guestFields, possibleGuestHashes, tooManyHashes } from "./guest-contacts.ts";
import { GuestHits } from "./guest-hits.ts";
import { type Closeness, type GuestSearch, matchContent, matchEnvelope } from "./guest-search.ts";

export interface GuestBooking extends BookingToErase {
  /** `expired`: the log has events of it that were too old to be applied, and nothing else is stored. */
  state: "active" | "deleted" | "expired";
  updatedAt: Date;
  closeness: Closeness;
}

const lettersPerPage = 200;
const candidatesPerBooking = 10;
/** Each statement is planned for all partitions of the log, and each booking may have many contents. */
const candidatesAtOnce = 50;
/** If an index is missing, this reads all bookings. */
const statementTimeoutMs = 15 * 60 * 1_000;

/**
 * Finds the bookings of a guest: those that hold the value now, and those whose log does; and those that hold, or have
 * held, a similar one. By a consumer's reference, only trips that have it now.
 *
 * @param limit of exact hits: the newest are found. Many may have the address of one agency. Default: none
 */
export function findGuestBookings(
  pool: pg.Pool,
  key: DigestKey,
  search: GuestSearch,
  limit?: number,
): Promise<GuestBooking[]> {
  return inTransaction(pool, async (connection) => {
    const client = await allowLongStatements(connection, statementTimeoutMs);
    // PostgreSQL reads a GIN index only by a bitmap scan.
    await client.query("set local enable_bitmapscan to on");
    // Few candidates are another guest's, except those with too many contacts, which come last.
    const most = limit === undefined ? undefined : limit * candidatesPerBooking;
    const candidates =
      search.by === "reference"
        ? await findByReference(client, search.value, search.partner, most)
        : await findByContact(client, possibleGuestHashes(key, search.by, search.forms), search.partner, most);
    const isNamed = ({ reference }: Candidate) => search.by === "reference" && reference === search.value;
    const hits = new GuestHits<GuestBooking>(limit);
    for (let at = 0; at < candidates.length && !hits.isFull; at += candidatesAtOnce) {
      const some = candidates.slice(at, at + candidatesAtOnce);
      const contents = await readContents(
        client,
        some.filter((candidate) => !isNamed(candidate)),
      );
      for (const candidate of some) {
        const closeness = isNamed(candidate) ? "exact" : compare(contents.get(nameOf(candidate)) ?? [], search);
        if (closeness !== undefined) hits.add({ ...candidate, closeness });
      }
    }
    return hits.all;
  });
}

type Candidate = Omit<GuestBooking, "closeness"> & { bookingKey: Buffer };

const candidateColumns = `booking_key as "bookingKey", partner, reference_kind as "referenceKind", reference, state,
  updated_at as "updatedAt", event_id as "eventId", sequence, created_at as "createdAt"`;

interface CandidateRow extends Omit<Candidate, "event"> {
  eventId: string;
  sequence: number;
  createdAt: Date;
}

async function findByContact(
  client: Queryable,
  hashes: string[],
  partner: string | undefined,
  limit: number | undefined,
): Promise<Candidate[]> {
  const { rows } = await client.query<CandidateRow>(
    `select ${candidateColumns} from bookings
     where guest_hashes && $1::bigint[] and guest_hashes <> '{}' and ($2::text is null or partner = $2)
     order by guest_hashes = $4::bigint[], updated_at desc
     limit $3`,
    [hashes, partner ?? null, limit ?? null, [tooManyHashes]],
  );
  return rows.map(toCandidate);
}

/** A consumer's trips are found by a hash of the partner and the reference. */
async function findByReference(
  client: Queryable,
  reference: string,
  partner: string | undefined,
  limit: number | undefined,
): Promise<Candidate[]> {
  const partners = partner === undefined ? await findPartners(client) : [partner];
  const { rows } = await client.query<CandidateRow>(
    `select ${candidateColumns} from bookings
     where reference = $1 and erased_at is null and ($2::text is null or partner = $2)
     union
     select ${candidateColumns} from bookings
     where consumer_hash = any($3::bigint[])
       and ($2::text is null or partner = $2)
     union all
     (
       select distinct on (booking_key) booking_key, partner, reference_kind, reference, outcome, received_at, id,
         sequence, received_at
       from booking_events
       where outcome = 'expired' and reference = $1 and ($2::text is null or partner = $2)
         and not exists (select from bookings where bookings.booking_key = booking_events.booking_key)
       order by booking_key, sequence
     )
     order by "updatedAt" desc
     limit $4`,
    [
      reference,
      partner ?? null,
      partners.map((id) => consumerHash(bookingKey(id, "consumer", reference))),
      limit ?? null,
    ],
  );
  return rows.map(toCandidate);
}

/** The partners of all bookings, by one look into the index for each. The partners file may not have all of them. */
async function findPartners(client: Queryable): Promise<string[]> {
  const { rows } = await client.query<{ partner: string }>(
    `with recursive known as (
       select min(partner) as partner from bookings
       union all
       select (select min(partner) from bookings where partner > known.partner) from known where partner is not null
     )
     select partner from known where partner is not null`,
  );
  return rows.map(({ partner }) => partner);
}

function toCandidate({ eventId, sequence, createdAt, ...booking }: CandidateRow): Candidate {
  return { ...booking, event: { id: eventId, sequence, receivedAt: createdAt } };
}

const comparedFields = [
  ...guestFields,
  "consumerPartnerExternalReference",
  "consumerTripPartnerExternalReference",
] satisfies BookingFieldName[];

const nameOf = ({ bookingKey: key }: { bookingKey: Buffer }) => key.toString("hex");

/** What is and was sent of the bookings, by their names. */
async function readContents(client: Queryable, candidates: Candidate[]): Promise<Map<string, SentContent[]>> {
  const { rows } = await client.query<SentContent & { bookingKey: Buffer }>(
    `select distinct booking_key as "bookingKey", default_country as "defaultCountry",
       (select jsonb_object_agg(name, payload -> name) from unnest($2::text[]) as name) as payload
     from (
       select booking_key, payload, default_country from bookings where booking_key = any($1)
       union all
       select booking_key, payload, default_country from booking_events where booking_key = any($1)
     ) as sent
     where payload is not null`,
    [candidates.map(({ bookingKey: key }) => key), comparedFields],
  );
  return Map.groupBy(rows, nameOf);
}

/** Different contacts may have the same hash, and a booking may have too many, so the contents decide. */
function compare(contents: SentContent[], search: GuestSearch): Closeness | undefined {
  const found = contents.map((content) => matchContent(search, content));
  return found.find((closeness) => closeness === "exact") ?? found.find((closeness) => closeness !== undefined);
}

export interface GuestLetter {
  eventId: string;
  closeness: Closeness;
  /** Undefined: no worker could read the event. */
  booking: BookingToErase | undefined;
}

/**
 * Finds the dead letters of a guest. No index leads to them: this reads all that have not been emptied.
 *
 * @param limit of exact hits. Default: none
 */
export async function findGuestLetters(pool: pg.Pool, search: GuestSearch, limit?: number): Promise<GuestLetter[]> {
  const hits = new GuestHits<GuestLetter>(limit);
  for (let after = "00000000-0000-0000-0000-000000000000"; ; ) {
    const { rows } = await pool.query<{ eventId: string; envelope: Buffer }>(
      `select event_id as "eventId", envelope from dead_letters
       where event_id > $1 and envelope <> ''
       order by event_id
       limit ${lettersPerPage}`,
      [after],
    );
    for (const { eventId, envelope } of rows) {
      const match = matchEnvelope(search, envelope.toString());
      if (match === undefined) continue;
      const { closeness } = match;
      hits.add({ eventId, closeness, booking: match.isReadable ? match.booking : undefined });
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < lettersPerPage || hits.isFull) return hits.all;
    after = last.eventId;
  }
}
