import type { Queryable } from "../connect/queryable.ts";
import { firstIdAt } from "../tables/event-ids.ts";
import { type Pace, type PaceWindow, readPaces } from "./read-paces.ts";

/** What became of a partner's events, as far as PostgreSQL knows. */
export interface PartnerActivity {
  /** In the order of the windows. */
  paces: Pace[];
  /** What the sender should know, by its code. */
  notices: Notice[];
  /** The newest events that could not be applied, and that nobody has dealt with yet. */
  failed: { eventId: string; code: string; failedAt: Date }[];
}

export interface Notice {
  code: string;
  /** At most {@link maxNoticed}. */
  count: number;
  /** Of the newest event. */
  lastEventId: string;
}

/** In each window. An hour with fewer events is counted completely. */
const lookedOfWindow = 500;
const maxNoticed = 1_000;
/** Of those that all partners have. */
const maxLettersLooked = 1_000;
const maxLetters = 20;

/** Has an index, which only a query with the same words can use. */
const isNoticed = "warnings && '{booking-unknown,key-reused,reference-kind,replaced}'";
const noticeCodes = ["booking-unknown", "key-reused", "reference-kind", "replaced"];

/**
 * Reads what became of a partner's events in some windows, one after another and by indexes. The cost does not depend on
 * how many events there are.
 */
export async function readPartnerActivity(
  client: Queryable,
  partner: string,
  windows: PaceWindow[],
): Promise<PartnerActivity> {
  const paces = await readPaces(client, windows, { partners: windows.map(() => partner), looked: lookedOfWindow });
  const notices = await readNotices(client, partner, windows);
  return { paces, notices, failed: await findFailed(client, partner) };
}

async function readNotices(client: Queryable, partner: string, windows: PaceWindow[]): Promise<Notice[]> {
  const { rows } = await client.query<Notice>(
    `select code, count(*)::int as count, max(id::text collate "C") as "lastEventId"
     from (
       select id, warnings from booking_events
       where partner = $1 and id >= $2 and id < $3 and ${isNoticed}
       order by partner desc, id desc
       limit ${maxNoticed}
     ) as noticed
     cross join unnest(warnings) as code
     where code = any($4)
     group by code
     order by count desc, code`,
    [
      partner,
      firstIdAt(new Date(Math.min(...windows.map(({ from }) => from.getTime())))),
      firstIdAt(new Date(Math.max(...windows.map(({ until }) => until.getTime())))),
      noticeCodes,
    ],
  );
  return rows;
}

async function findFailed(client: Queryable, partner: string): Promise<PartnerActivity["failed"]> {
  const { rows } = await client.query<PartnerActivity["failed"][number]>(
    `select event_id as "eventId", error_code as code, failed_at as "failedAt"
     from (
       select event_id, partner, error_code, failed_at from dead_letters
       where resolved_at is null
       order by failed_at desc
       limit ${maxLettersLooked}
     ) as newest
     where partner = $1
     order by failed_at desc
     limit ${maxLetters}`,
    [partner],
  );
  return rows;
}
