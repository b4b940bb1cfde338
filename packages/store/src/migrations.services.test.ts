import { bookingFields } from "@booking-events/schema";
import { createTestDatabase } from "@booking-events/scripts/testing";
import { runner } from "node-pg-migrate";
import type { Pool } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createPool } from "./database.ts";
import { migrate, NewerSchemaError } from "./migrate.ts";

let database: Awaited<ReturnType<typeof createTestDatabase>>;
let pool: Pool;

beforeAll(async () => {
  database = await createTestDatabase();
  pool = createPool({ databaseUrl: database.url, applicationName: "test", maxConnections: 4, onError: () => {} });
});

afterAll(async () => {
  await pool.end();
  await database.drop();
});

describe("migrations", () => {
  test("many processes may migrate an empty database at once", async () => {
    await pool.query("drop schema public cascade; create schema public");
    const applied = await Promise.all(Array.from({ length: 5 }, () => migrate(database.url)));
    expect(applied.filter((names) => names.length > 0)).toHaveLength(1);
    expect((await pool.query("select * from bookings")).rows).toEqual([]);
  });

  test("a database that a newer program has migrated is refused", async () => {
    await pool.query("insert into schema_migrations (name, run_on) values ('9999_from-the-future', now())");
    await expect(migrate(database.url)).rejects.toThrow(NewerSchemaError);
    await expect(migrate(database.url)).rejects.toThrow("9999_from-the-future");
    await pool.query("delete from schema_migrations where name = '9999_from-the-future'");
    expect(await migrate(database.url)).toEqual([]);
  });
});

describe("0004, on a database in which idempotency keys belong to partners", () => {
  const eventId = (number: number) => `0199a000-0000-7000-8000-${String(number).padStart(12, "0")}`;

  test("keeps what was recorded, and marks what the new rule would not have left out", async () => {
    await migrateTo(3);
    const log = [
      { booking: "T1", content: "A", duplicateOf: null },
      { booking: "T1", content: "A", duplicateOf: 1 },
      { booking: "T1", content: "B", duplicateOf: 1 },
      { booking: "T2", content: "A", duplicateOf: 1 },
      // Came to its place before the one that owns the key.
      { booking: "T2", content: "A", duplicateOf: 4 },
    ];
    for (const [index, { booking, content, duplicateOf }] of log.entries())
      await pool.query(
        `insert into booking_events (id, partner, kind, reference, booking_key, sequence, idempotency_key, payload,
           content_digest, outcome, duplicate_of, received_at)
         values ($1, 'acme', 'create', $2::text, $3, $4, 'k-1', '{}', $5, $6, $7, now())`,
        [
          ...[eventId(index + 1), booking, Buffer.from(booking), index + 1, Buffer.from(content)],
          ...[duplicateOf === null ? "created" : "duplicate", duplicateOf === null ? null : eventId(duplicateOf)],
        ],
      );
    expect(await migrate(database.url)).toEqual(["0004_keys-of-a-booking"]);
    const { rows } = await pool.query("select outcome, duplicate_of, warnings from booking_events order by sequence");
    expect(rows).toEqual([
      { outcome: "created", duplicate_of: null, warnings: [] },
      { outcome: "duplicate", duplicate_of: eventId(1), warnings: [] },
      { outcome: "duplicate", duplicate_of: eventId(1), warnings: ["key-reused"] },
      { outcome: "duplicate", duplicate_of: eventId(1), warnings: ["key-reused"] },
      { outcome: "duplicate", duplicate_of: eventId(4), warnings: ["key-reused"] },
    ]);
  });

  async function migrateTo(count: number): Promise<void> {
    await pool.query("drop schema public cascade; create schema public");
    await runner({
      databaseUrl: database.url,
      dir: new URL("../migrations", import.meta.url).pathname,
      migrationsTable: "schema_migrations",
      direction: "up",
      count,
      log: () => {},
    });
  }
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

function quote(value: string | null): string {
  return value === null ? "null" : `'${value.replaceAll("'", "''")}'`;
}
