import { useTestDatabase } from "@booking-events/harness/test-database";
import { beforeEach, describe, expect, test } from "vitest";
import { appendChanges, type BookingChange, type ChangeToInsert, readChanges } from "./booking-changes.ts";
import { inTransaction } from "./database.ts";

const { pool } = useTestDatabase({ maxConnections: 12 });

beforeEach(() => pool.query("truncate booking_changes"));

let number = 0;

function aChange(): ChangeToInsert {
  number += 1;
  const eventId = `0199a000-0000-7000-8000-${String(number).padStart(12, "0")}`;
  return {
    partner: "acme",
    referenceKind: "trip",
    reference: `TRIP-${number}`,
    change: "created",
    eventId,
    sequence: number,
  };
}

/** Reads all changes after `seen`. */
async function readOn(seen: BookingChange[]): Promise<void> {
  for (;;) {
    const changes = await readChanges(pool, { after: seen.at(-1)?.id ?? 0, limit: 7 });
    if (changes.length === 0) return;
    seen.push(...changes);
  }
}

test("a reader that asks for the changes after the last id misses nothing while many transactions append", async () => {
  const seen: BookingChange[] = [];
  let areWriting = true;
  const reading = (async () => {
    while (areWriting) await readOn(seen);
  })();
  const writers = Array.from({ length: 10 }, async (_, writer) => {
    for (let round = 0; round < 30; round += 1) {
      await inTransaction(pool, async (client) => {
        await appendChanges(client, Array.from({ length: 1 + ((writer + round) % 4) }, aChange));
        // This commit is slow, so others could overtake it.
        if ((writer + round) % 3 === 0) await client.query("select pg_sleep(0.002)");
      });
    }
  });
  await Promise.all(writers);
  areWriting = false;
  await reading;
  await readOn(seen);

  const { rows } = await pool.query<{ id: number }>("select id from booking_changes order by id");
  expect(seen.map(({ id }) => id)).toEqual(rows.map(({ id }) => id));
  expect(rows.length).toBeGreaterThan(500);
});

describe("a transaction that has appended and is not committed yet", () => {
  test("holds up the next one, so its rows are never seen after later ones", async () => {
    const order: string[] = [];
    const { promise: mayCommit, resolve: commit } = Promise.withResolvers<void>();
    const { promise: hasAppended, resolve: appended } = Promise.withResolvers<void>();
    const first = inTransaction(pool, async (client) => {
      await appendChanges(client, [aChange()]);
      appended();
      await mayCommit;
      order.push("first");
    });
    await hasAppended;
    const second = inTransaction(pool, (client) => appendChanges(client, [aChange()])).then(() => order.push("second"));
    // The second transaction waits for the lock. It is not merely slow.
    await expect
      .poll(
        async () => (await pool.query("select 1 from pg_locks where locktype = 'advisory' and not granted")).rowCount,
      )
      .toBe(1);
    expect(await readChanges(pool, { after: 0, limit: 10 })).toEqual([]);
    commit();
    await Promise.all([first, second]);
    expect(order).toEqual(["first", "second"]);
  });

  test("would be missed by such a reader without the lock", async () => {
    const insert =
      "insert into booking_changes (partner, reference_kind, reference, change, event_id, sequence) values ('acme', 'trip', 'T', 'created', gen_random_uuid(), 1)";
    const slow = await pool.connect();
    await slow.query("begin");
    await slow.query(insert);
    await pool.query(insert);
    const seen: BookingChange[] = [];
    await readOn(seen);
    await slow.query("commit");
    slow.release();
    await readOn(seen);
    expect(seen).toHaveLength(1);
    expect((await pool.query("select * from booking_changes")).rowCount).toBe(2);
  });
});

test("a change comes with the booking's content after it", async () => {
  const { eventId } = aChange();
  await pool.query(
    `insert into booking_events (id, partner, kind, reference_kind, reference, booking_key, sequence, payload, content_digest, outcome, received_at)
     values ($1, 'acme', 'create', 'consumer', 'T', '\\x00', 1, '{"note": "A"}', '\\x00', 'created', now())`,
    [eventId],
  );
  const change = { partner: "acme", referenceKind: "consumer" as const, reference: "T", eventId, sequence: 1 };
  await inTransaction(pool, (client) =>
    appendChanges(client, [
      { ...change, change: "created" },
      { ...change, change: "deleted" },
    ]),
  );
  expect(await readChanges(pool, { after: 0, limit: 10 })).toMatchObject([
    { ...change, change: "created", payload: { note: "A" }, changedAt: expect.any(Date) },
    { ...change, change: "deleted", payload: null },
  ]);
});
