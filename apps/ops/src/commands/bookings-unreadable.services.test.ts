import { useTestDatabase } from "@booking-events/harness/test-database";
import { beforeEach, expect, test } from "vitest";
import { runOps } from "../testing/run-ops.ts";

const { pool, url } = useTestDatabase();
const run = (...args: string[]) => runOps(["bookings", "unreadable", ...args], { environment: { DATABASE_URL: url } });

beforeEach(() => pool.query("truncate bookings"));

async function book(partner: string, reference: string, phone: string): Promise<void> {
  await pool.query(
    `insert into bookings (booking_key, partner, reference_kind, reference, state, event_id, sequence, revision,
       last_sequence, payload, created_at, updated_at)
     values (sha256(convert_to($2, 'UTF8')), $1, 'consumer', $2, 'active', gen_random_uuid(), 1, 1, 1,
       jsonb_build_object('consumerPhone', $3::text), now(), now())`,
    [partner, reference, phone],
  );
}

test("counts what could not be normalised by partner and field, and shows no value", async () => {
  await book("acme", "A-1", "canary 1");
  await book("acme", "A-2", "canary 2");
  await book("acme", "A-3", "+34600000000");
  await book("other", "B-1", "canary 3");
  const { exitCode, stdout } = await run();
  expect(exitCode).toBe(0);
  expect(stdout).not.toContain("canary");
  expect(stdout.split("\n").map((line) => line.trim().split(/ {2,}/))).toEqual([
    ["PARTNER", "FIELD", "BOOKINGS", "EXAMPLE"],
    ["acme", "consumerPhone", "2", "A-1 (the consumer's)"],
    ["other", "consumerPhone", "1", "B-1 (the consumer's)"],
    [""],
  ]);
  const one = await run("other", "--json");
  expect(JSON.parse(one.stdout)).toEqual([
    {
      ...{ partner: "other", field: "consumerPhone", bookings: 1 },
      ...{ exampleReference: "B-1", exampleReferenceKind: "consumer" },
    },
  ]);
});

test("says so if there is nothing to count", async () => {
  expect(await run()).toEqual({ exitCode: 0, stdout: "All values could be normalised.\n", stderr: "" });
});

test("says so if all values of a partner could be normalised, or if it has no bookings", async () => {
  await book("acme", "A-1", "+34600000000");
  expect(await run("acme")).toEqual({ exitCode: 0, stdout: "All values could be normalised.\n", stderr: "" });
  for (const args of [[], ["--json"]])
    expect(await run("acmee", ...args)).toEqual({
      exitCode: 1,
      stdout: "",
      stderr: "Partner acmee has no bookings. See which partners there are: npm run ops -- partners list\n",
    });
});

test("says what to do if it takes too long", async () => {
  await book("acme", "A-1", "canary");
  // As if there were too many bookings.
  await pool.query(
    `create or replace function booking_email(value text) returns text language plpgsql volatile as $$
     begin raise exception using errcode = '57014', message = 'canceling statement due to statement timeout'; end $$`,
  );
  const { exitCode, stderr } = await run();
  expect([exitCode, stderr]).toEqual([
    1,
    "There are too many bookings to read them all in 30 seconds. On a replica, without a statement time-out, run: " +
      "select * from booking_details_unreadable\n",
  ]);
});
