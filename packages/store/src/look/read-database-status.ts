import { type DatabaseLocation, withBriefConnection } from "../connect/brief-connection.ts";
import type { Queryable } from "../connect/queryable.ts";
import { type DatabaseIdentity, readDatabaseIdentity } from "../tables/database-id.ts";
import { groupDeadLetters } from "../tables/dead-letters.ts";
import { firstIdAt } from "../tables/event-ids.ts";
import { type FeedReader, listFeedReaders } from "../tables/feed-readers.ts";
import { compareMigrations, type MigrationStatus } from "../upkeep/compare-migrations.ts";
import { findDurabilityProblems } from "../upkeep/find-durability-problems.ts";
import { type DatabaseTimes, readDatabaseTimes } from "./read-database-times.ts";

export interface DatabaseStatus {
  settings: DatabaseSettings;
  /** Why PostgreSQL may lose events or takes none, in sentences for an operator. */
  problems: string[];
  migrations: MigrationStatus;
  /** Null: the database has not been migrated. */
  data: DatabaseData | null;
}

interface DatabaseSettings {
  version: string;
  fsync: string;
  synchronousCommit: string;
  bytes: number;
  isStandby: boolean;
  /** Transactions are read-only by default. */
  isReadOnly: boolean;
}

interface DatabaseData {
  identity: DatabaseIdentity;
  /** How many events were received from each partner, in how much time. Only events that were applied count. */
  rates: { windowMs: number; partners: { partner: string; events: number }[] };
  rhythms: Rhythm[];
  /** Open ones, the most frequent code first. At most {@link maxDeadLetters} are counted. */
  deadLetters: { code: string; count: number }[];
  /**
   * The end of the months from this one on that have a partition, without a gap. Null: this month has none. By a wrong
   * clock, maintenance makes partitions of later months.
   */
  partitionsUntil: Date | null;
  times: DatabaseTimes;
  /** Programs that read the feed, and subscriptions: those that are furthest behind first. At most {@link maxFeedReaders}. */
  feedReaders: FeedReader[];
}

/** How often a partner sends events, as far as a sample shows. */
export interface Rhythm {
  partner: string;
  /** In how many slots of the sample it has sent any. */
  activeSlots: number;
  /** Between two events in the sample. */
  longestGapMs: number;
  lastSeenAt: Date;
}

const minuteMs = 60_000;
const rateWindowMs = 5 * minuteMs;
/** The newest events. If there are more in the window, the window is shorter. */
const maxRateEvents = 20_000;
/** A week has each day and each night once. */
const rhythmPeriodMs = 7 * 24 * 60 * minuteMs;
const slotMs = 30 * minuteMs;
const eventsPerSlot = 100;
const maxDeadLetters = 10_000;
const maxFeedReaders = 1_000;

/**
 * Reads what an operator must know of PostgreSQL and the events. It looks at a bounded number of rows, which the primary
 * key finds, so the cost does not depend on how many there are.
 */
export async function readDatabaseStatus(database: DatabaseLocation, now: Date): Promise<DatabaseStatus> {
  return withBriefConnection(database, "booking-events-ops", async (client) => {
    const settings = await readSettings(client);
    const migrations = await compareMigrations(client);
    return {
      settings,
      problems: [...(await findDurabilityProblems(client)), ...findWriteProblems(settings)],
      migrations,
      data: migrations.last === null ? null : await readData(client, now),
    };
  });
}

async function readSettings(client: Queryable): Promise<DatabaseSettings> {
  const { rows } = await client.query<DatabaseSettings>(
    `select current_setting('server_version') as version, current_setting('fsync') as fsync,
       current_setting('synchronous_commit') as "synchronousCommit",
       pg_database_size(current_database())::float8 as bytes, pg_is_in_recovery() as "isStandby",
       current_setting('default_transaction_read_only')::boolean as "isReadOnly"`,
  );
  return rows[0] as DatabaseSettings;
}

function findWriteProblems({ isStandby, isReadOnly }: DatabaseSettings): string[] {
  if (isStandby) return ["PostgreSQL is a read-only standby. Point DATABASE_URL at the primary."];
  return isReadOnly
    ? ["PostgreSQL takes no writes, since default_transaction_read_only is on. Find out why, such as a full disk."]
    : [];
}

async function readData(client: Queryable, now: Date): Promise<DatabaseData> {
  // As in `pool.ts`: all of these queries can read in the order of an index.
  await client.query("set local enable_bitmapscan to off");
  return {
    identity: await readDatabaseIdentity(client),
    rates: await readRates(client, now),
    rhythms: await readRhythms(client, now),
    deadLetters: await countDeadLetters(client),
    partitionsUntil: await findEndOfPartitions(client, now),
    times: await readDatabaseTimes(client),
    feedReaders: await listFeedReaders(client, maxFeedReaders),
  };
}

async function readRates(client: Queryable, now: Date): Promise<DatabaseData["rates"]> {
  const { rows } = await client.query<{ partner: string; events: number; oldest: Date }>(
    `select partner, count(*)::int as events, min(received_at) as oldest
     from (select partner, received_at from booking_events where id >= $1 order by id desc limit $2) as newest
     group by partner order by events desc, partner`,
    [firstIdAt(new Date(now.getTime() - rateWindowMs)), maxRateEvents],
  );
  const total = rows.reduce((sum, { events }) => sum + events, 0);
  const oldestMs = Math.min(...rows.map(({ oldest }) => oldest.getTime()));
  const windowMs = total < maxRateEvents ? rateWindowMs : Math.max(now.getTime() - oldestMs, 1_000);
  return { windowMs, partners: rows.map(({ partner, events }) => ({ partner, events })) };
}

/** Looks at the first events of each slot. A partner with few events among many others may be missed in some of them. */
async function readRhythms(client: Queryable, now: Date): Promise<Rhythm[]> {
  const slots = Array.from({ length: rhythmPeriodMs / slotMs }, (_, slot) => now.getTime() - (slot + 1) * slotMs);
  const { rows } = await client.query<Rhythm>(
    `with seen as (
       select slot, partner, max(received_at) as last_at
       from unnest($1::uuid[], $2::uuid[]) with ordinality as slots (first_id, end_id, slot)
       cross join lateral (
         select partner, received_at from booking_events
         where id >= first_id and id < end_id
         order by id limit $3
       ) as sample
       group by slot, partner
     ), gaps as (
       select partner, last_at, lag(slot) over (partition by partner order by slot) as newer, slot from seen
     )
     select partner, count(*)::int as "activeSlots", coalesce(max(slot - newer), 0)::float8 * $4 as "longestGapMs",
       max(last_at) as "lastSeenAt"
     from gaps group by partner`,
    [
      slots.map((startMs) => firstIdAt(new Date(startMs))),
      slots.map((startMs) => firstIdAt(new Date(startMs + slotMs))),
      eventsPerSlot,
      slotMs,
    ],
  );
  return rows;
}

async function countDeadLetters(client: Queryable): Promise<DatabaseData["deadLetters"]> {
  const groups = await groupDeadLetters(client, { limit: maxDeadLetters });
  return groups.map(({ errorCode: code, count }) => ({ code, count }));
}

async function findEndOfPartitions(client: Queryable, now: Date): Promise<Date | null> {
  const { rows } = await client.query<{ until: Date }>(
    `with recursive covered (until) as (
       select ends from log_partitions() where starts <= $1 and ends > $1
       union all
       select ends from log_partitions(), covered where starts = until
     )
     select until from covered order by until desc limit 1`,
    [now],
  );
  return rows[0]?.until ?? null;
}
