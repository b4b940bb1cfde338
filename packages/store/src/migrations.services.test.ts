import { createHash, randomBytes } from "node:crypto";
import { waitFor } from "@booking-events/harness";
import { execute, useTestDatabase } from "@booking-events/harness/test-database";
import { bookingFields } from "@booking-events/schema";
import { PG_MIGRATE_LOCK_ID } from "node-pg-migrate";
import { escapeIdentifier } from "pg";
import { describe, expect, test } from "vitest";
import { bookingKey } from "./booking-key.ts";
import { createPool } from "./database.ts";
import { DatabaseEncodingError, migrate, NewerSchemaError, SchemaRefusedError } from "./migrate.ts";
import { migrateTo } from "./testing/migrate-to.ts";

const { pool, url } = useTestDatabase();

describe("migrations", () => {
  test("many processes may migrate an empty database at the same time", async () => {
    await pool.query("drop schema public cascade; create schema public");
    const applied = await Promise.all(Array.from({ length: 5 }, () => migrate(url)));
    expect(applied.filter((names) => names.length > 0)).toHaveLength(1);
    expect((await pool.query("select * from bookings")).rows).toEqual([]);
  });

  test("one process runs each, whatever the isolation level of the database is", async () => {
    const name = new URL(url).pathname.slice(1);
    await pool.query("drop schema public cascade; create schema public");
    await pool.query(`alter database ${name} set default_transaction_isolation = 'repeatable read'`);
    const applied = await Promise.all(Array.from({ length: 5 }, () => migrate(url)));
    await pool.query(`alter database ${name} reset default_transaction_isolation`);
    expect(applied.filter((names) => names.length > 0)).toHaveLength(1);
  });

  test("a database that a newer release has migrated is refused", async () => {
    await pool.query("insert into schema_migrations (name, run_on) values ('9999_from-the-future', now())");
    await expect(migrate(url)).rejects.toThrow(NewerSchemaError);
    await expect(migrate(url)).rejects.toThrow("9999_from-the-future");
    await pool.query("delete from schema_migrations where name = '9999_from-the-future'");
    expect(await migrate(url)).toEqual([]);
  });
});

test("values are normalised in the same way whatever the database's locale is", async () => {
  const name = `test_${randomBytes(8).toString("hex")}`;
  const locale = "locale_provider icu icu_locale 'tr-TR' locale 'C' template template0";
  await execute(url, `create database ${name} ${locale}`);
  const databaseUrl = Object.assign(new URL(url), { pathname: `/${name}` }).href;
  const turkish = createPool({ databaseUrl, applicationName: "test", maxConnections: 1, onError: () => {} });
  try {
    await migrate(databaseUrl);
    const { rows } = await turkish.query(
      `select booking_phone('+4٤٢٠٧١٨٣٨٧٥') as phone, booking_language('es-٤١٩') as digits, booking_language('IT-it') as language,
         booking_email('IDA@EXAMPLE.COM') as email, booking_code('ist', 3, 3) as code`,
    );
    expect(rows).toEqual([{ phone: null, digits: null, language: "it-IT", email: "ida@example.com", code: "IST" }]);
  } finally {
    await turkish.end();
    await execute(url, `drop database ${name} with (force)`);
  }
});

test.each(["LATIN1", "SQL_ASCII"])(
  "a database in %s is refused in a sentence, before an event is lost",
  async (encoding) => {
    const name = `test_${randomBytes(8).toString("hex")}`;
    await execute(url, `create database ${name} encoding '${encoding}' locale 'C' template template0`);
    try {
      const refused = migrate(Object.assign(new URL(url), { pathname: `/${name}` }).href);
      await expect(refused).rejects.toThrow(DatabaseEncodingError);
      await expect(refused).rejects.toThrow(`The database "${name}" has the encoding ${encoding}, `);
    } finally {
      await execute(url, `drop database ${name} with (force)`);
    }
  },
);

test("migrations that deadlock with a worker are run again", async () => {
  await migrateTo(7, { pool, url });
  const worker = await pool.connect();
  try {
    // The other side is the one that gives way.
    await worker.query("set deadlock_timeout to '1 min'; begin; select from bookings");
    const migrated = migrate(url);
    const isLocked = "select from pg_locks where locktype = 'relation' and not granted";
    await waitFor(async () => expect((await pool.query(isLocked)).rows).toHaveLength(1));
    await worker.query("select from booking_events");
    await worker.query("commit");
    expect(await migrated).toContain("0008_partitions-and-retention");
  } finally {
    worker.release(true);
  }
});

describe("in a schema of its own", () => {
  /** PostgreSQL's longest name, and one that means itself only in quotation marks. */
  const [longest, quoted] = ["s".repeat(63), "Odd name; --"];
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
      expect(await owns(schema)).toEqual(["booking_details", "bookings", "schema_migrations"]);
      await pool.query(`drop schema ${escapeIdentifier(schema)} cascade`);
    }
    expect(await migrate(url)).toEqual([]);
  });

  test("a migration does not wait for that of another schema", async () => {
    const other = await pool.connect();
    try {
      await other.query("begin");
      await other.query(`select pg_advisory_xact_lock(${PG_MIGRATE_LOCK_ID})`);
      expect(await migrate(url, { schema: longest })).not.toEqual([]);
      await pool.query(`drop schema ${longest} cascade`);
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

describe("0004, on a database with events", () => {
  const eventId = (number: number) => `0199a000-0000-7000-8000-${String(number).padStart(12, "0")}`;
  const trip = (reference: string) => ({ consumerTripPartnerExternalReference: reference });
  const consumer = (reference: string) => ({ consumerPartnerExternalReference: reference });

  /** As in releases before this migration. */
  function oldKey(reference: string): Buffer {
    return createHash("sha256").update(`acme\0${reference}`).digest();
  }

  async function log(
    number: number,
    reference: string,
    more: { payload: object; content?: string; duplicateOf?: number; kind?: string },
  ): Promise<void> {
    const { payload, content = "A", duplicateOf, kind = "create" } = more;
    await pool.query(
      `insert into booking_events (id, partner, kind, reference, booking_key, sequence, idempotency_key, payload,
         content_digest, outcome, duplicate_of, received_at)
       values ($1, 'acme', $2, $3, $4, $5, 'k-1', $6, $7, $8, $9, now())`,
      [
        ...[eventId(number), kind, reference, oldKey(reference), number, payload, Buffer.from(content)],
        ...(duplicateOf === undefined ? ["created", null] : ["duplicate", eventId(duplicateOf)]),
      ],
    );
    await pool.query(
      `insert into booking_changes (partner, reference, change, event_id, sequence)
       values ('acme', $1, 'created', $2::uuid, $3)`,
      [reference, eventId(number), number],
    );
  }

  async function book(reference: string, decidedBy: number, payload: object | null): Promise<void> {
    await pool.query(
      `insert into bookings (booking_key, partner, reference, state, event_id, sequence, payload, last_sequence,
         created_at, updated_at)
       values ($1, 'acme', $2, 'active', $3, $4, $5, $4, now(), now())`,
      [oldKey(reference), reference, eventId(decidedBy), decidedBy, payload],
    );
  }

  test("keeps the recorded duplicates, and marks those that the new rule would not have left out", async () => {
    await migrateTo(3, { pool, url });
    await log(1, "T1", { payload: trip("T1") });
    await log(2, "T1", { payload: trip("T1"), duplicateOf: 1 });
    await log(3, "T1", { payload: trip("T1"), content: "B", duplicateOf: 1 });
    await log(4, "T2", { payload: trip("T2"), duplicateOf: 1 });
    await log(5, "T2", { payload: trip("T2"), duplicateOf: 4 });
    await book("T1", 1, trip("T1"));
    expect(await migrate(url)).toContain("0004_keys-and-reference-kinds");
    const { rows } = await pool.query("select outcome, duplicate_of, warnings from booking_events order by sequence");
    expect(rows).toEqual([
      { outcome: "created", duplicate_of: null, warnings: [] },
      { outcome: "duplicate", duplicate_of: eventId(1), warnings: [] },
      { outcome: "duplicate", duplicate_of: eventId(1), warnings: ["key-reused"] },
      { outcome: "duplicate", duplicate_of: eventId(1), warnings: ["key-reused"] },
      { outcome: "duplicate", duplicate_of: eventId(4), warnings: ["key-reused"] },
    ]);
  });

  test("a booking's reference gets the kind that its content says, and so do its log and changes", async () => {
    await migrateTo(3, { pool, url });
    await log(1, "T1", { payload: { ...consumer("C1"), ...trip("T1") } });
    await book("T1", 1, { ...consumer("C1"), ...trip("T1") });
    await log(2, "Zoë\\", { payload: consumer("Zoë\\") });
    await book("Zoë\\", 2, consumer("Zoë\\"));
    await log(3, "GONE", { payload: consumer("GONE"), kind: "delete" });
    await book("GONE", 3, null);
    // Events with both kinds of reference were one booking until now.
    await log(4, "MIXED", { payload: trip("MIXED") });
    await log(5, "MIXED", { payload: consumer("MIXED"), content: "B" });
    await book("MIXED", 5, consumer("MIXED"));
    // This event has no booking, since it was left out of the fold.
    await log(6, "OUT", { payload: consumer("OUT"), duplicateOf: 1 });
    await migrate(url);

    const expected = [
      ["T1", "trip"],
      ["Zoë\\", "consumer"],
      ["GONE", "consumer"],
      ["MIXED", "consumer"],
    ] as const;
    const bookings = await pool.query("select reference, reference_kind, booking_key from bookings order by event_id");
    expect(bookings.rows).toEqual(
      expected.map(([reference, kind]) => ({
        ...{ reference, reference_kind: kind, booking_key: bookingKey("acme", kind, reference) },
      })),
    );
    for (const table of ["booking_events", "booking_changes"]) {
      const { rows } = await pool.query(`select reference, reference_kind from ${table} order by sequence`);
      const mixed = { reference: "MIXED", reference_kind: "consumer" };
      const others = expected.slice(0, 3).map(([reference, kind]) => ({ reference, reference_kind: kind }));
      expect(rows).toEqual([...others, mixed, mixed, { reference: "OUT", reference_kind: "consumer" }]);
    }
    const { rows } = await pool.query<{ reference: string; booking_key: Buffer; reference_kind: "trip" | "consumer" }>(
      "select reference, booking_key, reference_kind from booking_events",
    );
    for (const row of rows) expect(row.booking_key).toEqual(bookingKey("acme", row.reference_kind, row.reference));
    expect(oldKey("T1")).toEqual(bookingKey("acme", "trip", "T1"));
  });

  test.each([
    ["a booking", "select from bookings", "select from booking_events"],
    ["an idempotency key", "select from idempotency_keys", "select from bookings"],
  ])("waits for a worker that has locked %s, and holds no lock that the worker needs", async (_, first, next) => {
    await migrateTo(3, { pool, url });
    const worker = await pool.connect();
    try {
      await worker.query("begin");
      await worker.query(first);
      const migrated = migrate(url);
      await waitFor(async () => {
        const { rows } = await pool.query(
          "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()",
        );
        expect(rows).toHaveLength(1);
      });
      await worker.query(next);
      await worker.query("commit");
      expect(await migrated).toContain("0004_keys-and-reference-kinds");
    } finally {
      worker.release(true);
    }
  });
});

test("after 0005, a worker of an older release still writes dead letters, for either kind of reference", async () => {
  await migrateTo(4, { pool, url });
  const write = (number: number) =>
    pool.query(
      `insert into dead_letters (event_id, partner, kind, reference, sequence, error_code, error, attempts, envelope)
       values ($1, 'acme', 'create', 'R', 1, 'X', 'x', 1, '')`,
      [`0199a000-0000-7000-8000-00000000000${number}`],
    );
  await write(1);
  expect(await migrate(url)).toContain("0005_reference-kind-of-dead-letters");
  await write(2);
  const { rows } = await pool.query("select reference_kind from dead_letters");
  expect(rows).toEqual([{ reference_kind: null }, { reference_kind: null }]);
});

describe("0006, on a database with changes", () => {
  const eventId = (number: number) => `0199a000-0000-7000-8000-${String(number).padStart(12, "0")}`;
  /** The statements of the release before. */
  const appendBefore = `insert into booking_changes (partner, reference, change, event_id, sequence, reference_kind)
     select * from unnest($1::text[], $2::text[], $3::text[], $4::uuid[], $5::bigint[], $6::text[])`;
  const bookBefore = `insert into bookings (booking_key, partner, reference_kind, reference, state, event_id, sequence,
       last_sequence, created_at, updated_at)
     values (sha256($1), 'acme', $2, $3, 'active', $4, 1, 1, now(), now())`;

  function change(number: number, referenceKind: string, reference: string): Promise<unknown> {
    const row = ["acme", reference, "created", eventId(number), number, referenceKind];
    return pool.query(
      appendBefore,
      row.map((value) => [value]),
    );
  }

  async function fill(): Promise<void> {
    await migrateTo(5, { pool, url });
    for (const [kind, reference, number] of [
      ["trip", "T1", 1],
      ["consumer", "T1", 2],
      ["trip", "T2", 3],
    ] as const) {
      await pool.query(bookBefore, [`${kind} ${reference}`, kind, reference, eventId(number)]);
      await change(number, kind, reference);
    }
    // As after a transaction that was rolled back.
    await pool.query("select nextval(pg_get_serial_sequence('booking_changes', 'id'))");
    await change(5, "trip", "T1");
    await change(6, "trip", "T1");
  }

  test("numbers the changes of each booking, and names what was before", async () => {
    await fill();
    expect(await migrate(url)).toContain("0006_feed-without-gaps");
    const changes = await pool.query(
      "select id, revision, event_id, previous_event_id from booking_changes order by id",
    );
    expect(changes.rows).toEqual([
      { id: 1, revision: 1, event_id: eventId(1), previous_event_id: null },
      { id: 2, revision: 1, event_id: eventId(2), previous_event_id: null },
      { id: 3, revision: 1, event_id: eventId(3), previous_event_id: null },
      { id: 5, revision: 2, event_id: eventId(5), previous_event_id: eventId(1) },
      { id: 6, revision: 3, event_id: eventId(6), previous_event_id: eventId(5) },
    ]);
    const bookings = await pool.query("select reference_kind, reference, revision from bookings order by event_id");
    expect(bookings.rows).toEqual([
      { reference_kind: "trip", reference: "T1", revision: 3 },
      { reference_kind: "consumer", reference: "T1", revision: 1 },
      { reference_kind: "trip", reference: "T2", revision: 1 },
    ]);
  });

  test("gives out no id again, though the newest changes have been deleted, and has no gaps from there on", async () => {
    await fill();
    await pool.query("delete from booking_changes where id > 3");
    await migrate(url);
    expect((await pool.query("select last_id, gapless_from from feed_position")).rows).toEqual([
      { last_id: 6, gapless_from: 7 },
    ]);
  });

  test("an empty feed begins at 1", async () => {
    await migrateTo(5, { pool, url });
    await migrate(url);
    expect((await pool.query("select last_id, gapless_from from feed_position")).rows).toEqual([
      { last_id: 0, gapless_from: 1 },
    ]);
  });

  test("a worker of the release before can neither append nor add a booking, which it takes for an outage", async () => {
    await fill();
    await migrate(url);
    await expect(change(7, "trip", "T3")).rejects.toMatchObject({ code: "23502" });
    await expect(pool.query(bookBefore, ["k", "trip", "T3", eventId(7)])).rejects.toMatchObject({ code: "23502" });
  });
});

test("each table, view and column says what it holds", async () => {
  const { rows } = await pool.query<{ name: string }>(
    `select concat_ws('.', relname, attname) as name
     from pg_class
     join (select attrelid, attnum, attname from pg_attribute where attnum > 0 and not attisdropped
       union all select oid, 0, null from pg_class) as part (attrelid, attnum, attname) on attrelid = oid
     where relnamespace = 'public'::regnamespace and relkind in ('r', 'p', 'v') and relname <> 'schema_migrations'
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

  test.each<[fn: string, cases: [value: string | null, result: unknown][]]>([
    [
      "booking_flag",
      [
        ["true", true],
        [" YES ", true],
        ["1", true],
        ["false", false],
        ["No", false],
        ["0", false],
        ["maybe", null],
        ["", null],
        [null, null],
      ],
    ],
    [
      "booking_date",
      [
        ["2026-06-14", "2026-06-14"],
        ["2026-06-14T23:30:00-05:00", "2026-06-14"],
        ["2026-02-31", null],
        ["soon", null],
        [null, null],
      ],
    ],
    [
      "booking_moment",
      [
        ["2026-06-14T07:27:17.335Z", "2026-06-14 07:27:17.335+00"],
        ["2026-06-14T07:27:17+0200", "2026-06-14 05:27:17+00"],
        ["2026-06-14", null],
        ["2026-02-31T00:00:00Z", null],
      ],
    ],
    [
      "booking_phone",
      [
        ["+44 (0)20 7946-0000", "+442079460000"],
        ["0049 30 1234567", "+49301234567"],
        ["+1.555.0100", "+15550100"],
        ["020 7946 0000", null],
        ["call me", null],
        ["+123456789012345678", null],
      ],
    ],
    [
      "booking_language",
      [
        ["EN", "en"],
        ["en_us", "en-US"],
        ["zh-hant-tw", "zh-Hant-TW"],
        ["es-419", "es-419"],
        ["English", null],
      ],
    ],
    [
      "booking_email",
      [
        [" Jo.Doe@Example.COM ", "jo.doe@example.com"],
        ["at home", null],
      ],
    ],
    [
      "booking_country",
      [
        [" Côte d'Ivoire ", "Côte d'Ivoire"],
        [" ", null],
        ["é".repeat(100), "é".repeat(100)],
        ["é".repeat(101), null],
      ],
    ],
  ])("%s normalises what it can, and never fails", async (fn, cases) => {
    for (const [value, result] of cases) {
      const cast = typeof result === "boolean" ? "" : "::text";
      const { rows } = await pool
        .query(`set time zone 'UTC'; select ${fn}(${quote(value)})${cast} as result`)
        .then((results) => (results as unknown as { rows: { result: unknown }[] }[])[1] ?? { rows: [] });
      expect([value, rows[0]?.result]).toEqual([value, result]);
    }
  });
});

test("booking_details shows what was sent beside what was normalised, and counts what could not be", async () => {
  const book = (reference: string, payload: object, state = "active") =>
    pool.query(
      `insert into bookings (booking_key, partner, reference_kind, reference, state, event_id, sequence, revision,
         last_sequence, payload, created_at, updated_at, guest_hashes, arrival_date, arrival_at, return_date, return_at,
         destination_country, destination_airport)
       select sha256(convert_to($1, 'UTF8')), 'acme', 'trip', $1, $2, gen_random_uuid(), 1, 1, 1, $3, now(), now(), '{}', trip.*
       from booking_trip($3) as trip`,
      [reference, state, JSON.stringify(payload)],
    );
  await book("GOOD", {
    ...{ consumerPhone: "+34 600 000 000", consumerTripIsLocal: "no", consumerLanguage: "es_es" },
    ...{ consumerTripDestinationAirportCode: "bcn", consumerTripDepartureAirportCode: " Mad", consumerCurrency: "eur" },
    ...{ consumerNationality: "es", consumerEmail: "Jo@Example.com", consumerTripDestinationCountryName: "Spain " },
    ...{ consumerTripArrivalDate: "2026-06-14T07:00:00Z" },
  });
  await book("BAD-2", { consumerPhone: "call me", consumerCurrency: "Euro", consumerNationality: null });
  await book("BAD-1", { consumerPhone: "600 000 000", consumerTripIsLocal: "perhaps" });
  await book("GONE", { consumerPhone: "600" }, "deleted");
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
    ...{ consumer_nationality_normalised: "ES", consumer_email_normalised: "jo@example.com" },
  });
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

function quote(value: string | null): string {
  return value === null ? "null" : `'${value.replaceAll("'", "''")}'`;
}
