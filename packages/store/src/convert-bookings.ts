import type pg from "pg";
import { inTransaction, type Queryable, setLockTimeout } from "./database.ts";
import type { DigestKey } from "./digest-key.ts";
import { boundGuestHashes, hashContacts } from "./guest-contacts.ts";
import { tripColumns } from "./trip.ts";

/** One transaction of {@link convertNextBookings}. */
const bookingsPerBatch = 500;
const rowsPerPage = 2_000;
/** Workers wait for the other bookings of the batch meanwhile. */
const lockTimeoutMs = 1_000;

/**
 * Gives bookings from before migration 0010 keyed digests, in their logs too, and the columns by which guests and trips are
 * found.
 * Until then, all digests of a booking are plain; afterwards, none is. So digests of one booking can be compared.
 *
 * @param bookingKeys of bookings that this transaction has locked
 */
export async function convertBookings(client: Queryable, key: DigestKey, bookingKeys: Buffer[]): Promise<void> {
  const hashes = new Map<string, string[]>(bookingKeys.map((bookingKey) => [bookingKey.toString("hex"), []]));
  for await (const rows of readContents(client, bookingKeys)) {
    for (const row of rows) {
      const name = row.bookingKey.toString("hex");
      hashes.set(name, boundGuestHashes([...(hashes.get(name) ?? []), ...hashContacts(key, row)]));
    }
    await convertDigests(client, key, rows);
  }
  await client.query(
    `update bookings set guest_hashes = string_to_array(converted.guest_hashes, ' ')::bigint[],
       content_digest = converted.content_digest,
       (${tripColumns.join(", ")}) = (select * from booking_trip(bookings.payload))
     from unnest($1::bytea[], $2::text[], $3::bytea[]) as converted (booking_key, guest_hashes, content_digest)
     where bookings.booking_key = converted.booking_key`,
    await toConvertedColumns(client, key, hashes),
  );
}

interface ContentRow {
  /** Of the event; null: the row is a booking's. */
  id: string | null;
  bookingKey: Buffer;
  digest: Buffer | null;
  email: string | null;
  phone: string | null;
}

/** A booking may have more events than fit into memory. */
async function* readContents(client: Queryable, bookingKeys: Buffer[]): AsyncGenerator<ContentRow[]> {
  await client.query(
    `declare contents no scroll cursor for
       select id, booking_key as "bookingKey", content_digest as digest, payload ->> 'consumerEmail' as email,
         payload ->> 'consumerPhone' as phone
       from booking_events
       where booking_key = any($1)`,
    [bookingKeys],
  );
  for (;;) {
    const { rows } = await client.query<ContentRow>(`fetch ${rowsPerPage} from contents`);
    if (rows.length > 0) yield rows;
    if (rows.length < rowsPerPage) break;
  }
  await client.query("close contents");
}

async function convertDigests(client: Queryable, key: DigestKey, rows: ContentRow[]): Promise<void> {
  const plain = rows.filter(({ digest }) => isPlain(digest));
  await client.query(
    `update booking_events set content_digest = converted.digest
     from unnest($1::uuid[], $2::bytea[]) as converted (id, digest)
     where booking_events.id = converted.id`,
    [plain.map(({ id }) => id), plain.map(({ digest }) => toKeyed(key, digest))],
  );
}

async function toConvertedColumns(
  client: Queryable,
  key: DigestKey,
  hashes: ReadonlyMap<string, string[]>,
): Promise<unknown[][]> {
  // The log may have lost the event whose payload the booking holds.
  const { rows } = await client.query<ContentRow>(
    `select null as id, booking_key as "bookingKey", content_digest as digest, payload ->> 'consumerEmail' as email,
       payload ->> 'consumerPhone' as phone
     from bookings
     where booking_key = any($1)`,
    [[...hashes.keys()].map((hex) => Buffer.from(hex, "hex"))],
  );
  const allHashes = rows.map((row) =>
    boundGuestHashes([...(hashes.get(row.bookingKey.toString("hex")) ?? []), ...hashContacts(key, row)]),
  );
  return [
    rows.map(({ bookingKey }) => bookingKey),
    allHashes.map((ofBooking) => ofBooking.join(" ")),
    rows.map(({ digest }) => toKeyed(key, digest)),
  ];
}

/** A SHA-256 digest. Keyed digests are shorter. */
function isPlain(digest: Buffer | null): digest is Buffer {
  return digest?.length === 32;
}

function toKeyed(key: DigestKey, digest: Buffer | null): Buffer | null {
  return isPlain(digest) ? Buffer.from(key.digestContent(digest.toString("hex")), "hex") : digest;
}

/**
 * Converts some more of the bookings from before migration 0010. Workers convert the bookings that they touch.
 *
 * @returns whether there may be more
 * @throws 55P03 if a booking stays locked for a second. Try again then
 */
export function convertNextBookings(pool: pg.Pool, key: DigestKey): Promise<boolean> {
  return inTransaction(pool, async (client) => {
    await setLockTimeout(client, lockTimeoutMs);
    const { rows: positions } = await client.query<{ after: Buffer | null }>(
      `select converted_to as after from digest_key for update`,
    );
    const after = positions[0]?.after ?? null;
    if (after === null) return convertLatecomers(client, key);
    const { rows } = await client.query<{ bookingKey: Buffer; isOld: boolean }>(
      `select booking_key as "bookingKey", guest_hashes is null as "isOld"
       from bookings
       where booking_key > $1
       order by booking_key
       limit ${bookingsPerBatch}
       for update`,
      [after],
    );
    const old = rows.filter(({ isOld }) => isOld).map(({ bookingKey }) => bookingKey);
    if (old.length > 0) await convertBookings(client, key, old);
    const last = rows.length < bookingsPerBatch ? null : (rows.at(-1)?.bookingKey ?? null);
    await client.query("update digest_key set converted_to = $1", [last]);
    return last !== null;
  });
}

/**
 * A worker of an older release may have inserted bookings since the last one was converted. If there is no index of
 * them yet, they wait for it: without it, this would read all bookings.
 */
async function convertLatecomers(client: Queryable, key: DigestKey): Promise<boolean> {
  const { rows: indexes } = await client.query(
    "select from pg_index where indexrelid = to_regclass('bookings_to_convert') and indisvalid",
  );
  if (indexes.length === 0) return false;
  const { rows } = await client.query<{ bookingKey: Buffer }>(
    `select booking_key as "bookingKey" from bookings
     where guest_hashes is null
     order by booking_key
     limit ${bookingsPerBatch}
     for update`,
  );
  if (rows.length > 0)
    await convertBookings(
      client,
      key,
      rows.map(({ bookingKey }) => bookingKey),
    );
  return rows.length === bookingsPerBatch;
}
