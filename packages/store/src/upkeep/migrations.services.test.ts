import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { waitFor } from "@booking-events/harness";
import { execute } from "@booking-events/harness/execute";
import { findPreviousRelease } from "@booking-events/harness/previous-release";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { bookingFields } from "@booking-events/schema";
import { escapeIdentifier } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createPool } from "../connect/pool.ts";
import { testSchemaOf } from "../connect/transaction-limits.ts";
import { insertContents } from "../testing/insert-content.ts";
import { migrate, SchemaRefusedError, UnusableDatabaseError } from "./migrate.ts";

const { pool, url } = useTestDatabase();

describe("migrations", () => {
  test("many processes may migrate an empty database at the same time", async () => {
    await pool.query("drop schema if exists public, public_test_partners cascade; create schema public");
    const applied = await Promise.all(Array.from({ length: 5 }, () => migrate(url)));
    expect(applied.filter((names) => names.length > 0)).toHaveLength(1);
    expect((await pool.query("select * from bookings")).rows).toEqual([]);
  });

  test("one process runs each, whatever the isolation level of the database is", async () => {
    const name = new URL(url).pathname.slice(1);
    await pool.query("drop schema if exists public, public_test_partners cascade; create schema public");
    await pool.query(`alter database ${name} set default_transaction_isolation = 'repeatable read'`);
    const applied = await Promise.all(Array.from({ length: 5 }, () => migrate(url)));
    await pool.query(`alter database ${name} reset default_transaction_isolation`);
    expect(applied.filter((names) => names.length > 0)).toHaveLength(1);
  });

  test("say in the database which files it was made by", async () => {
    const { rows } = await pool.query("select name, length(digest) as length from schema_migrations order by name");
    expect(rows).toEqual(["0001_tables", "0002_read-model", "0003_upkeep"].map((name) => ({ name, length: 64 })));
    expect(await migrate(url)).toEqual([]);
  });
});

test("the files of a release are never touched", async ({ skip }) => {
  const release = await findPreviousRelease();
  if (release === undefined) return skip("no release has been tagged yet");
  const folder = fileURLToPath(new URL("../../migrations", import.meta.url));
  const { stdout } = await promisify(execFile)("git", [
    "diff",
    "--name-only",
    "--diff-filter=a",
    release,
    "--",
    folder,
  ]);
  expect(stdout).toBe("");
});

describe("a database whose schema is not this release's", () => {
  const readTables = async () =>
    (await pool.query("select oid, relname from pg_class where relnamespace = 'public'::regnamespace order by oid"))
      .rows;

  test("is refused if a newer release has migrated it", async () => {
    await pool.query(
      "insert into schema_migrations (name, digest, allows_older) values ('9999_from-the-future', '00', false)",
    );
    await expect(migrate(url)).rejects.toThrow(UnusableDatabaseError);
    await expect(migrate(url)).rejects.toThrow("9999_from-the-future");
    await pool.query("delete from schema_migrations where name = '9999_from-the-future'");
    expect(await migrate(url)).toEqual([]);
  });

  test("is used if the newer release's migration says that older ones can go on", async () => {
    const folder = await mkdtemp(join(tmpdir(), "migrations-"));
    const files = fileURLToPath(new URL("../../migrations", import.meta.url));
    await cp(files, folder, { recursive: true });
    const addition = "-- An index.\n-- Older releases can go on after this.\ncreate index added on bookings (state);\n";
    await writeFile(join(folder, "9999_addition.sql"), addition);
    expect(await migrate(url, { folder })).toEqual(["9999_addition"]);
    expect(await migrate(url)).toEqual([]);
    await writeFile(join(folder, "9999_zz-change.sql"), "alter table bookings add column changed text");
    expect(await migrate(url, { folder })).toEqual(["9999_zz-change"]);
    await expect(migrate(url)).rejects.toThrow("(9999_zz-change)");
    await pool.query(
      `delete from schema_migrations where name like '9999%'; alter table bookings drop column changed; drop index added;
       drop schema public_test_partners cascade`,
    );
    await rm(folder, { recursive: true });
  });

  test.each([
    [
      "a file that has changed",
      "0002_read-model",
      "update schema_migrations set digest = '00' where name = '0002_read-model'",
    ],
    [
      "a file that is gone",
      "0002_another",
      "insert into schema_migrations (name, digest, allows_older) values ('0002_another', '00', false)",
    ],
    [
      "another program",
      "0001_tables, 0002_read-model, 0012_of-before",
      `alter table schema_migrations drop column digest;
       update schema_migrations set name = '0012_of-before' where name = '0003_upkeep'`,
    ],
  ])(
    "is refused by the files' names, says which release to run, and stays as it is: made by %s",
    async (_, files, change) => {
      await pool.query("drop schema if exists public, public_test_partners cascade; create schema public");
      await migrate(url);
      await pool.query(change);
      const before = await readTables();
      const refused = migrate(url);
      await expect(refused).rejects.toThrow(UnusableDatabaseError);
      await expect(refused).rejects.toThrow(
        `The tables in the schema "public" were made by files that this release has not, or has changed: ${files}. ` +
          "Run the release that made them. Only if they are for development, start over without their data: run drop " +
          'schema "public" cascade or, if npm start has made them, delete the folder .data.',
      );
      expect(await readTables()).toEqual(before);
      await pool.query('drop schema "public" cascade');
      expect(await migrate(url)).toHaveLength(3);
    },
  );
});

test("text in our tables and indexes is ordered by its bytes, which no change of the C library or ICU changes", async () => {
  const { rows } = await pool.query<{ name: string }>(
    `with ours as (select oid from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p'))
     select attrelid::regclass || '.' || attname as name from pg_attribute join ours on oid = attrelid
     where attnum > 0 and not attisdropped and attcollation not in (0, '"C"'::regcollation)
     union all
     select distinct indexrelid::regclass::text from pg_index join ours on oid = indrelid, unnest(indcollation) as used
     where used not in (0, '"C"'::regcollation)`,
  );
  expect(rows).toEqual([]);
});

describe("in a database that sorts by ICU", () => {
  const name = `test_${randomBytes(8).toString("hex")}`;
  const databaseUrl = Object.assign(new URL(url), { pathname: `/${name}` }).href;
  const sorting = createPool({ databaseUrl, applicationName: "test", maxConnections: 1, onError: () => {} });

  beforeAll(async () => {
    await execute(url, `create database ${name} locale_provider icu icu_locale 'en' locale 'C' template template0`);
    await migrate(databaseUrl);
  });

  afterAll(async () => {
    await sorting.end();
    await execute(url, `drop database ${name} with (force)`);
  });

  test.each([
    ["an array", "unnest(array['key-1'::text]) as other (key)"],
    ["a value of JSON", "(select to_jsonb('key-1'::text) ->> 0 as key) as other"],
    ["an expression", "(select 'key-' || 1::text as key) as other"],
    ["a column of ours", "(select idempotency_key as key from booking_events) as other"],
  ])("a key is found by its index when it is compared with %s", async (_, source) => {
    const client = await sorting.connect();
    try {
      await client.query("begin; set local enable_seqscan to off");
      const { rows } = await client.query<{ "QUERY PLAN": string }>(
        `explain select from ${source} cross join lateral (
           select id from booking_events_default where booking_key = '' and idempotency_key = other.key
             and duplicate_of is null and 'key-reused' <> all (warnings)
           limit 1
         ) as found`,
      );
      const plan = rows.map((row) => row["QUERY PLAN"]).join("\n");
      expect(plan).toMatch(/Index Cond: .*booking_key = .*idempotency_key = /);
    } finally {
      await client.query("rollback");
      client.release();
    }
  });

  test("keys are in the order of their bytes", async () => {
    for (const [id, name] of ["a", "B", "Z"].entries())
      await sorting.query("insert into feed_readers (name, last_id) values ($1, $2)", [name, id]);
    const { rows } = await sorting.query("select name from feed_readers order by name");
    expect(rows.map((row) => row.name)).toEqual(["B", "Z", "a"]);
    const { rows: others } = await sorting.query("select name from unnest(array['a', 'B', 'Z']) as name order by name");
    expect(others.map((row) => row.name)).toEqual(["a", "B", "Z"]);
  });
});

test.each(["LATIN1", "SQL_ASCII"])(
  "a database in %s is refused in a sentence, before an event is lost",
  async (encoding) => {
    const name = `test_${randomBytes(8).toString("hex")}`;
    await execute(url, `create database ${name} encoding '${encoding}' locale 'C' template template0`);
    try {
      const refused = migrate(Object.assign(new URL(url), { pathname: `/${name}` }).href);
      await expect(refused).rejects.toThrow(UnusableDatabaseError);
      await expect(refused).rejects.toThrow(`The database "${name}" has the encoding ${encoding}, `);
    } finally {
      await execute(url, `drop database ${name} with (force)`);
    }
  },
);

describe("a later release's migration", () => {
  let folder: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "migrations-"));
    await cp(fileURLToPath(new URL("../../migrations", import.meta.url)), folder, { recursive: true });
    await writeFile(
      join(folder, "0004_note-twice.sql"),
      "alter table booking_events add column note text; alter table bookings add column note text;",
    );
  });
  afterAll(() => rm(folder, { recursive: true }));

  test("is run on a database that has those before it, again if it deadlocks with a worker", async () => {
    const worker = await pool.connect();
    try {
      // The other side is the one that gives way.
      await worker.query("set deadlock_timeout to '1 min'; begin; select from bookings");
      const migrated = migrate(url, { folder });
      const isLocked = "select from pg_locks where locktype = 'relation' and not granted";
      await waitFor(async () => expect((await pool.query(isLocked)).rows).toHaveLength(1));
      await worker.query("select from booking_events");
      await worker.query("commit");
      expect(await migrated).toEqual(["0004_note-twice"]);
    } finally {
      worker.release(true);
    }
    expect(await migrate(url, { folder })).toEqual([]);
    await expect(migrate(url)).rejects.toThrow("has been migrated by a newer version");
  });

  test("runs together with those before it on an empty database", async () => {
    await pool.query("drop schema if exists public, public_test_partners cascade; create schema public");
    expect((await migrate(url, { folder })).at(-1)).toBe("0004_note-twice");
    await pool.query("drop schema if exists public, public_test_partners cascade; create schema public");
    await migrate(url);
  });
});

describe("in a schema of its own", () => {
  /** The longest that has room for the name of the other schema, and one that means itself only in quotation marks. */
  const [longest, quoted] = ["s".repeat(49), "Odd name; --"];
  const dropBoth = (schema: string) =>
    pool.query(`drop schema ${[schema, testSchemaOf(schema)].map(escapeIdentifier).join(", ")} cascade`);
  const owns = async (schema: string) => {
    const { rows } = await pool.query<{ name: string }>(
      `select relname as name from pg_class where relnamespace = to_regnamespace($1)
         and relname in ('bookings', 'booking_details', 'schema_migrations')
       order by relname`,
      [escapeIdentifier(schema)],
    );
    return rows.map(({ name }) => name);
  };

  test("all tables are there, and those of other schemas are left alone", async () => {
    for (const schema of [longest, quoted]) {
      expect(await migrate(url, { schema })).not.toEqual([]);
      expect(await migrate(url, { schema })).toEqual([]);
      for (const each of [schema, testSchemaOf(schema)])
        expect(await owns(each)).toEqual(["booking_details", "bookings", "schema_migrations"]);
      await dropBoth(schema);
    }
    expect(await migrate(url)).toEqual([]);
  });

  test("a migration does not wait for that of another schema", async () => {
    const other = await pool.connect();
    try {
      await other.query("begin");
      await other.query("select pg_advisory_xact_lock(hashtextextended('migrations of public', 0))");
      expect(await migrate(url, { schema: longest })).not.toEqual([]);
      await dropBoth(longest);
    } finally {
      other.release(true);
    }
  });

  test.each([
    ["may not be created", "", /"mine" does not exist, and the user of DATABASE_URL may not create it/],
    ["may not be used", "create schema mine", /may not use the schema "mine"\. Run: grant usage on schema "mine" to/],
  ])("one that %s is refused in a sentence", async (_, prepare, message) => {
    const role = `guest_${randomBytes(4).toString("hex")}`;
    await pool.query(`create role ${role} login password 'x'; ${prepare}`);
    const asGuest = Object.assign(new URL(url), { username: role, password: "x" }).href;
    const refused = migrate(asGuest, { schema: "mine" });
    await expect(refused).rejects.toThrow(SchemaRefusedError);
    await expect(refused).rejects.toThrow(message);
    await pool.query(`drop schema if exists mine; drop role ${role}`);
  });
});

test("each table, view and column says what it holds", async () => {
  const { rows } = await pool.query<{ name: string }>(
    `select concat_ws('.', relname, attname) as name
     from pg_class
     join (select attrelid, attnum, attname from pg_attribute where attnum > 0 and not attisdropped
       union all select oid, 0, null from pg_class) as part (attrelid, attnum, attname) on attrelid = oid
     where relnamespace = 'public'::regnamespace and relkind in ('r', 'p', 'v')
       and not relispartition and col_description(oid, attnum) is null and (attnum > 0 or obj_description(oid) is null)
     order by name`,
  );
  expect(rows.map(({ name }) => name)).toEqual([]);
});

describe("booking_details", () => {
  test("has a column for every listed field", async () => {
    const { rows } = await pool.query<{ name: string; type: string }>(
      `select column_name as name, data_type as type from information_schema.columns where table_name = 'booking_details'`,
    );
    const types = new Map(rows.map(({ name, type }) => [name, type]));
    const wanted = { flag: "boolean", date: "date", text: "text", phone: "text", email: "text", language: "text" };
    for (const { name, type } of bookingFields) {
      expect([name, types.get(name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`))]).toEqual([
        name,
        wanted[type],
      ]);
    }
  });
});

test("booking_details shows what was sent beside what was normalised, and counts what could not be", async () => {
  await insertContents(pool, [
    {
      reference: "GOOD",
      payload: {
        ...{ consumerPhone: "+34 600 000 000", consumerTripIsLocal: "no", consumerLanguage: "es_es" },
        ...{ consumerTripDestinationAirportCode: "bcn", consumerTripDepartureAirportCode: " Mad" },
        ...{ consumerNationality: "es", consumerEmail: "Jo <jo@Example.com>", consumerCurrency: "eur" },
        ...{ consumerTripArrivalDate: "2026-06-14T07:00:00Z", consumerTripDestinationCountryName: "Spain " },
        agentTimezone: "Europe/Madrid",
      },
    },
    { reference: "BAD-2", payload: { consumerPhone: "call me", consumerCurrency: "Euro!", consumerNationality: null } },
    { reference: "BAD-1", payload: { consumerPhone: "600", consumerTripIsLocal: "perhaps", consumerLanguage: " " } },
    { reference: "GONE", payload: { consumerPhone: "600" }, state: "deleted" },
    { reference: "FRENCH", payload: { consumerPhone: "06 12 34 56 78" }, defaultCountry: "FR" },
  ]);
  const { rows } = await pool.query("select * from booking_details where reference = 'GOOD'");
  expect(rows[0]).toMatchObject({
    ...{ consumer_phone: "+34600000000", consumer_phone_as_sent: "+34 600 000 000" },
    ...{ consumer_trip_is_local: false, consumer_trip_is_local_as_sent: "no" },
    ...{ consumer_language: "es-ES", consumer_language_as_sent: "es_es" },
    ...{ consumer_trip_arrival_date_as_sent: "2026-06-14T07:00:00Z" },
    ...{ consumer_trip_arrival_at: new Date("2026-06-14T07:00:00Z") },
    consumer_trip_destination_airport_code: "bcn",
    consumer_trip_destination_airport_code_normalised: "BCN",
    consumer_trip_departure_airport_code_normalised: "MAD",
    consumer_trip_destination_country_name_normalised: "Spain",
    ...{ consumer_currency: "eur", consumer_currency_normalised: "EUR" },
    ...{ consumer_nationality_normalised: "ES", consumer_phone_is_assumed: false },
    ...{ consumer_email: "Jo <jo@Example.com>", consumer_email_normalised: "jo@example.com" },
    ...{ agent_timezone: "Europe/Madrid", agent_timezone_normalised: "Europe/Madrid" },
    consumer_trip_destination_country_code: "ES",
  });
  const french = await pool.query("select * from booking_details where reference = 'FRENCH'");
  expect(french.rows[0]).toMatchObject({ consumer_phone: "+33612345678", consumer_phone_is_assumed: true });
  const unreadable = await pool.query("select * from booking_details_unreadable order by field");
  const counted = (field: string, bookings: number, reference: string) => ({
    ...{ partner: "acme", field, bookings, example_reference: reference, example_reference_kind: "trip" },
  });
  expect(unreadable.rows).toEqual([
    counted("consumerCurrency", 1, "BAD-2"),
    counted("consumerPhone", 2, "BAD-1"),
    counted("consumerTripIsLocal", 1, "BAD-1"),
  ]);
});
