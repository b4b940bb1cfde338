import type pg from "pg";
import { canonicalContent } from "./canonical-content.ts";
import type { ExpectedBooking, OracleEvent } from "./oracle.ts";

export type DatabaseContent = Awaited<ReturnType<typeof readDatabase>>;

export interface LoggedEvent extends Omit<OracleEvent, "content"> {
  /** Null: the log does not have it, or no longer. */
  content: string | null;
  outcome: string;
  /** Null: an operator's, or of what was erased. */
  secretId: string | null;
  warnings: string[];
}

export interface BookingRow extends Omit<ExpectedBooking, "state"> {
  partner: string;
  reference: string;
  state: string;
}

export interface ChangeRow {
  id: number;
  bookingId: string;
  partner: string;
  /** Null: the booking has been erased. */
  reference: string | null;
  revision: number;
  change: string;
  eventId: string;
}

/** Of 64 KB each at the most. */
const rowsPerPage = 200;
/** The same text as the reference of a consumer and of a trip names two bookings: see `histories.ts`. */
const reference = "case reference_kind when 'consumer' then 'consumer ' else '' end || reference as reference";

/** Reads the tables that users query, with SQL of its own. */
export async function readDatabase(pool: pg.Pool) {
  const log = await readPayloads<LoggedEvent>(
    pool,
    `select id, partner, kind, ${reference}, sequence::float8, idempotency_key as "idempotencyKey", payload, outcome,
       secret_id as "secretId", warnings
     from booking_events`,
  );
  const bookings = await readPayloads<BookingRow>(
    pool,
    `select partner, ${reference}, state, sequence::float8, payload from bookings`,
  );
  const { rows: changes } = await pool.query<ChangeRow>(
    `select id::float8, booking_id as "bookingId", partner, ${reference}, revision, change, event_id as "eventId"
     from booking_changes order by id`,
  );
  const { rows: deadLetters } = await pool.query<{ eventId: string; errorCode: string }>(
    `select event_id as "eventId", error_code as "errorCode" from dead_letters`,
  );
  return { log, bookings, changes, deadLetters };
}

/**
 * Reads page by page: all payloads at once would not fit into memory.
 *
 * @param select whose columns are those of a row, with the payload in place of the content
 */
async function readPayloads<Row>(pool: pg.Pool, select: string): Promise<Row[]> {
  const all: Row[] = [];
  const client = await pool.connect();
  try {
    await client.query(`begin; declare pages no scroll cursor for ${select}`);
    for (;;) {
      const { rows } = await client.query(`fetch ${rowsPerPage} from pages`);
      for (const { payload, ...row } of rows) all.push({ ...row, content: payload && canonicalContent(payload) });
      if (rows.length < rowsPerPage) return all;
    }
  } finally {
    // Closes the connection, and with it the cursor.
    client.release(true);
  }
}
