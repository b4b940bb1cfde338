import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { waitFor } from "@booking-events/harness";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { appendChanges, inTransaction } from "@booking-events/store";
import { expect, test } from "vitest";

const packageDirectory = new URL("../", import.meta.url);
const readme = readFileSync(new URL("README.md", packageDirectory), "utf8");
const { pool, url } = useTestDatabase();

function readBlock(language: string): string {
  const block = new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, "ms").exec(readme)?.[1];
  if (block === undefined) throw new Error(`The README has no block of ${language}.`);
  return block;
}

const event = (number: number) => `0199a000-0000-7000-8000-00000000000${number}`;
const subject = { partner: "acme", referenceKind: "trip", reference: "T1" } as const;

test("the README's example keeps a table as current as the bookings", async () => {
  await pool.query(readBlock("sql"));
  await pool.query(
    `insert into bookings (booking_key, partner, reference_kind, reference, state, event_id, sequence, revision,
       last_sequence, payload, created_at, updated_at)
     values ('k', 'acme', 'trip', 'T1', 'active', $1, 1, 1, 1, '{"consumerTripArrivalDate": "2026-06-14"}', now(), now())`,
    [event(1)],
  );
  const types = "--input-type=module-typescript";
  const args = ["--conditions=@booking-events/source", types, "--eval", readBlock("ts")];
  const example = spawn(process.execPath, args, {
    cwd: fileURLToPath(packageDirectory),
    env: { ...process.env, DATABASE_URL: url },
    stdio: ["ignore", "inherit", "inherit"],
  });
  const exited = once(example, "exit");
  try {
    const arrivals = async () => (await pool.query("select * from arrivals")).rows;
    await waitFor(async () =>
      expect(await arrivals()).toEqual([
        { partner: "acme", reference_kind: "trip", reference: "T1", arrival_date: "2026-06-14" },
      ]),
    );
    const change = { ...subject, revision: 2, change: "deleted", eventId: event(2), sequence: 2 } as const;
    await inTransaction(pool, (client) => appendChanges(client, [{ ...change, previousEventId: event(1) }]));
    await waitFor(async () => expect(await arrivals()).toEqual([]));
  } finally {
    example.kill("SIGTERM");
  }
  expect(await exited).toEqual([0, null]);
});
