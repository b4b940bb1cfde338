import { createTestDatabase, freePort } from "@booking-events/scripts/testing";
import { createPool } from "@booking-events/store";
import type { Pool } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { classifyFault, type Fault } from "./classify-fault.ts";

let database: Awaited<ReturnType<typeof createTestDatabase>>;
let pool: Pool;

beforeAll(async () => {
  database = await createTestDatabase();
  pool = createPool({ databaseUrl: database.url, applicationName: "test", maxConnections: 2, onError: () => {} });
});

afterAll(async () => {
  await pool.end();
  await database.drop();
});

async function faultOf(failure: Promise<unknown>): Promise<Fault> {
  try {
    await failure;
  } catch (error) {
    return classifyFault(error);
  }
  throw new Error("It was to fail.");
}

describe("the event's own fault", () => {
  test.each([
    ["a value that jsonb can't hold", `select '"\\u0000"'::jsonb`, "22P05"],
    ["an impossible date", "select '2026-02-31'::date", "22008"],
    ["a missing value", "insert into dead_letters (event_id) values (gen_random_uuid())", "23502"],
    ["nesting deeper than the stack", "select repeat('[', 100000)::jsonb", "54001"],
  ])("%s", async (_, sql, code) => {
    expect(await faultOf(pool.query(sql))).toMatchObject({ who: "event", code });
  });

  test("its description tells nothing of the content", async () => {
    const fault = await faultOf(pool.query("select $1::date", ["canary@example.com"]));
    expect(JSON.stringify(fault)).not.toContain("canary");
  });
});

describe("an outage", () => {
  test.each([
    ["a read-only database", "begin read only; create table t (x int)", "25006"],
    ["a statement that was cancelled", "set statement_timeout = 1; select pg_sleep(1)", "57014"],
    ["a missing table", "select * from no_such_table", "42P01"],
  ])("%s", async (_, sql, code) => {
    expect(await faultOf(pool.query(sql))).toMatchObject({ who: "outage", code });
  });

  test("a session that the administrator ended", async () => {
    const client = await pool.connect();
    client.on("error", () => {});
    const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
    const sleeping = faultOf(client.query("select pg_sleep(10)"));
    await pool.query("select pg_terminate_backend($1)", [rows[0]?.pid]);
    expect((await sleeping).who).toBe("outage");
    expect((await faultOf(client.query("select 1"))).who).toBe("outage");
    client.release(true);
  });

  test("nobody at the address, a wrong password, a database that is not there", async () => {
    const nobody = new URL(database.url);
    nobody.port = String(await freePort());
    const stranger = new URL(database.url);
    stranger.username = "nobody";
    const nowhere = new URL(database.url);
    nowhere.pathname = "/no_such_database";
    for (const url of [nobody, stranger, nowhere]) {
      const other = createPool({
        databaseUrl: url.href,
        applicationName: "test",
        maxConnections: 1,
        onError: () => {},
      });
      expect((await faultOf(other.query("select 1"))).who, url.href).toBe("outage");
      await other.end();
    }
  });
});

test("a mistake of ours is nobody else's fault", () => {
  expect(classifyFault(new TypeError("x is not a function: canary"))).toEqual({
    who: "unknown",
    code: "TypeError",
    message: "The worker failed to apply the event (TypeError).",
  });
  expect(classifyFault("a string").who).toBe("unknown");
});
