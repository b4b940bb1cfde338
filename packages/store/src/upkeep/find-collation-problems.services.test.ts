import { randomBytes } from "node:crypto";
import { execute } from "@booking-events/harness/execute";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createPool } from "../connect/pool.ts";
import { findCollationProblems } from "./find-collation-problems.ts";
import { migrate } from "./migrate.ts";

const { url } = useTestDatabase();
const name = `test_${randomBytes(8).toString("hex")}`;
const databaseUrl = Object.assign(new URL(url), { pathname: `/${name}` }).href;
const pool = createPool({ databaseUrl, applicationName: "test", maxConnections: 1, onError: () => {} });

beforeAll(async () => {
  await execute(url, `create database ${name} locale_provider icu icu_locale 'en' locale 'C' template template0`);
  await migrate(databaseUrl);
});

afterAll(async () => {
  await pool.end();
  await execute(url, `drop database ${name} with (force)`);
});

test("a database under which ICU has changed is found, and named with the remedy", async () => {
  expect(await findCollationProblems(pool)).toEqual([]);
  // As if the database had been made with another ICU.
  await pool.query("update pg_database set datcollversion = '66.1' where datname = current_database()");
  const [problem, ...others] = await findCollationProblems(pool);
  expect(others).toEqual([]);
  expect(problem?.sentence).toMatch(
    new RegExp(
      `^Indexes may miss rows: the database "${name}" has version 66\\.1 of .*, and PostgreSQL sorts by [\\d.]+\\.$`,
    ),
  );
  for (const statement of problem?.statements ?? []) await execute(databaseUrl, statement);
  expect(await findCollationProblems(pool)).toEqual([]);
});

test("a collation of an index is found, and one that no index uses is not", async () => {
  await pool.query(
    "create table theirs (name text collate \"de-x-icu\"); create collation unused (provider = icu, locale = 'fr')",
  );
  await pool.query("update pg_collation set collversion = '66.1' where collname in ('de-x-icu', 'unused')");
  expect(await findCollationProblems(pool)).toEqual([]);
  await pool.query("create index on theirs (name)");
  expect(await findCollationProblems(pool)).toEqual([
    { sentence: expect.stringContaining('the collation "de-x-icu" has version 66.1'), statements: expect.anything() },
  ]);
});
