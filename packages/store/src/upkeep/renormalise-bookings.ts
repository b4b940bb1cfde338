import type { ReferenceKind } from "@booking-events/schema";
import type pg from "pg";
import { byteas, texts } from "../connect/binary-arrays.ts";
import type { Queryable } from "../connect/queryable.ts";
import { inTransaction } from "../connect/transaction.ts";
import { allowLongStatements } from "../connect/transaction-limits.ts";
import type { DigestKey } from "../guests/digest-key.ts";
import { boundGuestHashes, guestFields, hashContacts } from "../guests/guest-contacts.ts";
import { assign, type Column, column, encode, toRows } from "../tables/columns.ts";
import { type ContentColumns, contentColumns, deriveColumns, type SentContent } from "../tables/content-columns.ts";

/** What became of one page of bookings. */
export interface Renormalised {
  bookings: number;
  /** Their columns or hashes were not what the rules say, and are now, or would be. */
  changed: number;
  /** They differ, but others changed them each time that they were to be written. */
  busy: number;
}

const bookingsPerPage = 200;
/** One that is locked or changed meanwhile is read again. */
const maxTries = 10;
const pauseMs = 50;
/** Of bookings with long logs. Nothing is locked while they are read. */
const readingTimeoutMs = 15 * 60 * 1_000;

/**
 * Computes the columns that follow from the payloads, and the hashes by which guests are found, for all bookings but
 * erased ones, and writes those that differ. It reads without locks, and writes a booking only if nobody has changed it
 * since. So workers may run meanwhile, and if it is interrupted, another run finds what is left.
 *
 * Nothing is written to the feed: the payloads stay as they are.
 */
export async function* renormaliseBookings(
  pool: pg.Pool,
  key: DigestKey,
  { partner, isDryRun }: { partner?: string | undefined; isDryRun: boolean },
): AsyncGenerator<Renormalised, void> {
  for (let after: Buffer = Buffer.alloc(0); ; ) {
    const page = await read(pool, key, { after, partner });
    const last = page.at(-1);
    if (last === undefined) return;
    const { changed, busy } = await correct(pool, key, page, isDryRun);
    yield { bookings: page.length, changed, busy };
    after = last.bookingKey;
  }
}

async function correct(pool: pg.Pool, key: DigestKey, page: Computed[], isDryRun: boolean) {
  let changed = 0;
  let rows = page;
  for (let tries = 1; ; tries += 1) {
    const different = await findDifferent(pool, rows);
    if (isDryRun || different.length === 0) return { changed: changed + different.length, busy: 0 };
    const written = await write(pool, different);
    changed += written;
    const busy = different.length - written;
    if (busy === 0 || tries === maxTries) return { changed, busy };
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
    rows = await read(pool, key, { bookingKeys: different.map(({ bookingKey }) => bookingKey) });
  }
}

/** A booking with the columns and hashes that it should have. */
interface Computed {
  bookingKey: Buffer;
  /** Changes whenever somebody changes the row. */
  version: string;
  columns: ContentColumns;
  /** Null: those that are stored are right. */
  guestHashes: string | null;
}

interface StoredRow {
  bookingKey: Buffer;
  version: string;
  partner: string;
  referenceKind: ReferenceKind;
  payload: SentContent["payload"] | null;
  defaultCountry: string | null;
  guestHashes: string;
}

async function read(
  pool: pg.Pool,
  key: DigestKey,
  filter: { after?: Buffer; partner?: string | undefined; bookingKeys?: Buffer[] },
): Promise<Computed[]> {
  return inTransaction(pool, async (connection) => {
    const client = await allowLongStatements(connection, readingTimeoutMs);
    const { rows } = await client.query<StoredRow>(
      `select booking_key as "bookingKey", xmin::text as version, partner, reference_kind as "referenceKind", payload,
         default_country as "defaultCountry", array_to_string(guest_hashes, ' ') as "guestHashes"
       from bookings
       where booking_key > $1 and ($2::text is null or partner = $2) and ($3::bytea[] is null or booking_key = any($3))
         and erased_at is null
       order by booking_key
       limit ${bookingsPerPage}`,
      [filter.after ?? Buffer.alloc(0), filter.partner ?? null, filter.bookingKeys ?? null],
    );
    const sent = await readSent(
      client,
      rows.map(({ bookingKey }) => bookingKey),
    );
    return rows.map((row) => compute(row, sent.get(row.bookingKey.toString("hex")) ?? [], key));
  });
}

/** Reads what decides about guests' hashes: what each event of the bookings has sent. */
async function readSent(client: Queryable, bookingKeys: Buffer[]): Promise<Map<string, SentContent[]>> {
  const { rows } = await client.query<SentContent & { bookingKey: Buffer }>(
    `select distinct booking_key as "bookingKey", default_country as "defaultCountry",
       (select jsonb_object_agg(name, payload -> name) from unnest($2::text[]) as name) as payload
     from booking_events
     where booking_key = any((select $1::bytea[])::bytea[]) and payload is not null`,
    [byteas(bookingKeys), guestFields],
  );
  return Map.groupBy(rows, ({ bookingKey }) => bookingKey.toString("hex"));
}

function compute(
  { bookingKey, version, partner, referenceKind, payload, defaultCountry, guestHashes: stored }: StoredRow,
  sent: SentContent[],
  key: DigestKey,
): Computed {
  const content = payload === null ? null : { payload, defaultCountry };
  // The log may have lost the event that the payload is from.
  const contents = content === null ? sent : [...sent, content];
  const hashes = boundGuestHashes(contents.flatMap((each) => hashContacts(key, each)));
  const isSame = hashes.toSorted().join(" ") === stored.split(" ").toSorted().join(" ");
  return {
    bookingKey,
    version,
    columns: deriveColumns({ partner, referenceKind }, content),
    guestHashes: isSame ? null : hashes.join(" "),
  };
}

const keyColumns: Column<Computed>[] = [
  column("booking_key", "bytea", byteas, ({ bookingKey }) => bookingKey),
  column("version", "text", texts, ({ version }) => version),
  column("guest_hash_list", "text", texts, ({ guestHashes }) => guestHashes),
];
const changedRows = toRows([...keyColumns, ...contentColumns]);
const contentNames = contentColumns.map(({ name }) => name);

function encodeAll(rows: readonly Computed[]): Buffer[] {
  return [
    ...encode(keyColumns, rows),
    ...encode(
      contentColumns,
      rows.map(({ columns }) => columns),
    ),
  ];
}

async function findDifferent(pool: pg.Pool, rows: readonly Computed[]): Promise<Computed[]> {
  const [stored, computed] = ["bookings", "changed"].map((table) => contentNames.map((name) => `${table}.${name}`));
  const { rows: found } = await pool.query<{ bookingKey: Buffer }>(
    `select bookings.booking_key as "bookingKey"
     from ${changedRows} as changed join bookings on bookings.booking_key = changed.booking_key
     where changed.guest_hash_list is not null or (${stored}) is distinct from (${computed})`,
    encodeAll(rows),
  );
  return rows.filter(({ bookingKey }) => isAmong(found, bookingKey));
}

/**
 * The lock is taken in the order in which workers take it, and held for one statement.
 *
 * @returns how many bookings were written: neither those that are locked, nor those that have changed
 */
async function write(pool: pg.Pool, rows: readonly Computed[]): Promise<number> {
  return inTransaction(pool, async (client) => {
    const { rows: unchanged } = await client.query<{ bookingKey: Buffer }>(
      `select bookings.booking_key as "bookingKey"
       from unnest($1::bytea[], $2::text[]) as known (booking_key, version)
       join bookings on bookings.booking_key = known.booking_key and bookings.xmin = known.version::xid
       order by bookings.booking_key
       for update of bookings skip locked`,
      encode(keyColumns.slice(0, 2), rows),
    );
    const locked = rows.filter(({ bookingKey }) => isAmong(unchanged, bookingKey));
    if (locked.length === 0) return 0;
    await client.query(
      `update bookings set ${assign(contentNames)},
         guest_hashes = coalesce(string_to_array(changed.guest_hash_list, ' ')::bigint[], bookings.guest_hashes)
       from ${changedRows} as changed
       where bookings.booking_key = changed.booking_key`,
      encodeAll(locked),
    );
    return locked.length;
  });
}

function isAmong(found: readonly { bookingKey: Buffer }[], bookingKey: Buffer): boolean {
  return found.some((one) => one.bookingKey.equals(bookingKey));
}
