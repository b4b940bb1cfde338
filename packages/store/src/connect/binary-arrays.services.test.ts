import { useTestDatabase } from "@booking-events/harness/test-database";
import { describe, expect, test } from "vitest";
import { bigints, booleans, byteas, days, integers, moments, texts, timestamps, uuids } from "./binary-arrays.ts";

const { pool } = useTestDatabase();

/** What PostgreSQL takes the array for, as the texts that it would show. */
async function read(array: Buffer, type: string): Promise<(string | null)[]> {
  const { rows } = await pool.query<{ values: (string | null)[] }>(`select $1::${type}[]::text[] as values`, [array]);
  return rows[0]?.values ?? [];
}

describe("PostgreSQL reads what was written", () => {
  test.each([
    ["text", texts, ["", "O'Brien", 'a "b" {c}, \\d', "NULL", "日本 🛫", "\t\n", null]],
    ["bigint", bigints, [0, 1, -1, 2 ** 31, 2 ** 32 + 5, -(2 ** 32) - 5, 2 ** 53 - 1, 1 - 2 ** 53, null]],
    ["integer", integers, [0, -1, 2 ** 31 - 1, -(2 ** 31), null]],
    ["boolean", booleans, [true, false, null]],
    ["uuid", uuids, ["01938f60-f6b1-7c5e-8000-0123456789ab", null, "ffffffff-ffff-ffff-ffff-ffffffffffff"]],
  ] as [string, (values: unknown[]) => Buffer, unknown[]][])("%s", async (type, write, values) => {
    expect(await read(write(values), type)).toEqual(values.map((value) => (value === null ? null : String(value))));
  });

  test("bytea", async () => {
    const bytes = [Buffer.from(""), Buffer.from([0, 255, 92]), null];
    expect(await read(byteas(bytes), "bytea")).toEqual(["\\x", "\\x00ff5c", null]);
  });

  test("timestamptz, to the millisecond", async () => {
    const dates = ["1900-01-01T00:00:00.001Z", "2000-01-01T00:00:00.000Z", "2026-06-14T07:27:17.335Z"].map(
      (text) => new Date(text),
    );
    const { rows } = await pool.query<{ values: (Date | null)[] }>("select $1::timestamptz[] as values", [
      timestamps([...dates, null]),
    ]);
    expect(rows[0]?.values).toEqual([...dates, null]);
  });

  test.each([
    "1900-01-01T00:00:00.000Z",
    "2026-06-14T07:27:17Z",
    "2026-06-14T07:27:17.3Z",
    "2026-06-14T07:27:17.335Z",
    "2026-06-14T07:27:17.3351Z",
    "2026-06-14T07:27:17.335129Z",
    "2026-06-14T07:27:17.3351299Z",
    "3000-01-01T11:59:59.999999Z",
  ])("the moment %s, to the microsecond", async (moment) => {
    const { rows } = await pool.query<{ same: boolean }>("select ($1::timestamptz[])[1] = $2::timestamptz as same", [
      moments([moment]),
      moment.replace("1299Z", "129Z"),
    ]);
    expect(rows).toEqual([{ same: true }]);
  });

  test("days", async () => {
    const dates = ["1900-01-01", "1999-12-31", "2000-01-01", "2028-02-29", "2999-12-31", null];
    expect(await read(days(dates), "date")).toEqual(dates);
  });

  test("nothing at all", async () => {
    const { rows } = await pool.query<{ count: number }>("select count(*)::int from unnest($1::text[])", [texts([])]);
    expect(rows[0]?.count).toBe(0);
  });

  test("only nulls, beside another array", async () => {
    const { rows } = await pool.query(
      "select unnest($1::integer[]) as id, unnest($2::text[]) as text, unnest($3::uuid[]) as uuid, unnest($4::date[]) as day",
      [integers([1, 2]), texts([null, null]), uuids([null, null]), days([null, null])],
    );
    const nothing = { text: null, uuid: null, day: null };
    expect(rows).toEqual([
      { id: 1, ...nothing },
      { id: 2, ...nothing },
    ]);
  });
});

const uuid = "01938f60-f6b1-7c5e-8000-0123456789ab";

test.each([
  ["a UUID that is too short", () => uuids(["01938f60"])],
  ["a UUID that is too short, beside one that is too long", () => uuids([uuid.slice(2), `${uuid}00`])],
  ["a UUID with another character", () => uuids(["01938f60-f6b1-7c5e-8000-0123456789ag"])],
  ["a fraction", () => bigints([0.5])],
  ["an integer that a double does not hold", () => bigints([2 ** 53])],
  ["an integer of more than 32 bits", () => integers([2 ** 31])],
  ["a moment that is none", () => moments(["soon"])],
  ["a day that is none", () => days(["2026-02-31T"])],
  ["an invalid date", () => timestamps([new Date(Number.NaN)])],
])("%s is refused, not written as something else", (_, write) => {
  expect(write).toThrow(RangeError);
});
