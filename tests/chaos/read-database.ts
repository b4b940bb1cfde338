import type { EventKind } from "@booking-events/schema";
import pg from "pg";
import { canonicalContent } from "./canonical-content.ts";

/** What stands in PostgreSQL, read with SQL of our own from the tables that users query. */
export interface DatabaseContent {
  log: LoggedEvent[];
  bookings: BookingRow[];
  /** In the order of their ids. */
  changes: ChangeRow[];
  deadLetters: { eventId: string; errorCode: string }[];
}

/** Of 64 KB each at the most. */
const rowsPerPage = 200;
/** Of a consumer, not of a trip: the same text is another booking's then. See `histories.ts`. */
const reference = "case reference_kind when 'consumer' then 'consumer ' else '' end || reference as reference";

export interface LoggedEvent {
  id: string;
  partner: string;
  kind: EventKind;
  reference: string;
  sequence: number;
  idempotencyKey: string | null;
  content: string;
  outcome: string;
  warnings: string[];
}

interface BookingRow {
  partner: string;
  reference: string;
  state: string;
  sequence: number;
  content: string | null;
}

export interface ChangeRow {
  id: number;
  partner: string;
  reference: string;
  change: string;
  eventId: string;
}

export async function readDatabase(databaseUrl: string): Promise<DatabaseContent> {
  const client = new pg.Client({ connectionString: databaseUrl, connectionTimeoutMillis: 10_000 });
  await client.connect();
  try {
    const log = await readPayloads<LoggedEvent>(
      client,
      `select id, partner, kind, ${reference}, sequence::float8, idempotency_key as "idempotencyKey", payload, outcome,
         warnings
       from booking_events`,
    );
    const bookings = await readPayloads<BookingRow>(
      client,
      `select partner, ${reference}, state, sequence::float8, payload from bookings`,
    );
    const changes = await client.query<ChangeRow>(
      `select id::float8, partner, ${reference}, change, event_id as "eventId" from booking_changes order by id`,
    );
    const deadLetters = await client.query<DatabaseContent["deadLetters"][number]>(
      `select event_id as "eventId", error_code as "errorCode" from dead_letters`,
    );
    return {
      log,
      bookings,
      changes: changes.rows,
      deadLetters: deadLetters.rows,
    };
  } finally {
    await client.end();
  }
}

/**
 * Page by page: all payloads at once would not fit into memory.
 *
 * @param select whose columns are those of a row, with the payload in place of the content
 */
async function readPayloads<Row>(client: pg.Client, select: string): Promise<Row[]> {
  const all: Row[] = [];
  await client.query("begin");
  await client.query(`declare pages no scroll cursor for ${select}`);
  for (;;) {
    const { rows } = await client.query(`fetch ${rowsPerPage} from pages`);
    for (const { payload, ...row } of rows) {
      all.push({ ...row, content: payload === null ? null : canonicalContent(payload) });
    }
    if (rows.length < rowsPerPage) break;
  }
  await client.query("commit");
  return all;
}
