import { randomUUID } from "node:crypto";
import { waitFor } from "@booking-events/harness";
import { untilBlocked, useTestDatabase } from "@booking-events/harness/test-database";
import pg from "pg";
import { beforeEach, describe, expect, test } from "vitest";
import { RollBack } from "../connect/roll-back.ts";
import { inTransaction } from "../connect/transaction.ts";
import { appendChanges, type ChangeToInsert } from "./booking-changes.ts";

const { pool, url } = useTestDatabase({ maxConnections: 12 });

beforeEach(() => pool.query("truncate booking_changes; update feed_position set last_id = 0"));

let number = 0;

function aChange(): ChangeToInsert {
  number += 1;
  const eventId = `0199a000-0000-7000-8000-${String(number).padStart(12, "0")}`;
  return {
    ...{ partner: "acme", referenceKind: "trip", reference: `TRIP-${number}`, revision: 1, change: "created" },
    ...{ bookingId: randomUUID(), eventId, sequence: number, previousEventId: null },
  };
}

async function idsAfter(last: number): Promise<number[]> {
  const { rows } = await pool.query<{ id: number }>(
    "select id from booking_changes where id > $1 order by id limit 7",
    [last],
  );
  return rows.map(({ id }) => id);
}

/** Reads on from `seen` until there is nothing more. */
async function readOn(seen: number[]): Promise<void> {
  for (;;) {
    const ids = await idsAfter(seen.at(-1) ?? 0);
    if (ids.length === 0) return;
    seen.push(...ids);
  }
}

const ways = ["commits", "commits slowly", "rolls back", "is killed"] as const;

async function append(way: (typeof ways)[number], count: number): Promise<void> {
  const transaction = inTransaction(pool, async (client) => {
    await appendChanges(client, Array.from({ length: count }, aChange));
    // A commit that takes its time: others would overtake it.
    if (way === "commits slowly") await client.query("select pg_sleep(0.002)");
    if (way === "rolls back") throw new RollBack();
    if (way === "is killed") await client.query("select pg_terminate_backend(pg_backend_pid())");
  });
  if (way.startsWith("commits")) await transaction;
  else await expect(transaction).rejects.toThrow();
}

test("a reader that asks for what comes after the last id sees each number once and in order, whatever writers do", async () => {
  const seen: number[] = [];
  let areWriting = true;
  const reading = (async () => {
    while (areWriting) await readOn(seen);
  })();
  let committed = 0;
  const writers = Array.from({ length: 10 }, async (_, writer) => {
    for (let round = 0; round < 28; round += 1) {
      const way = ways[(writer + round) % ways.length] ?? "commits";
      const count = 1 + (round % 5);
      await append(way, count);
      if (way.startsWith("commits")) committed += count;
    }
  });
  await Promise.all(writers);
  areWriting = false;
  await reading;
  await readOn(seen);
  expect(seen).toEqual(Array.from({ length: committed }, (_, index) => index + 1));
  expect((await pool.query("select last_id from feed_position")).rows).toEqual([{ last_id: committed }]);
});

test("a transaction that has appended and is not committed holds up the next one", async () => {
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
  await untilBlocked(pool, 1);
  expect(await idsAfter(0)).toEqual([]);
  commit();
  await Promise.all([first, second]);
  expect(order).toEqual(["first", "second"]);
  expect(await idsAfter(0)).toEqual([1, 2]);
});

describe("listeners of the channel booking_changes", () => {
  test("are told the last id once for each transaction that is committed", async () => {
    const listener = new pg.Client({ connectionString: url });
    await listener.connect();
    try {
      const heard: unknown[] = [];
      listener.on("notification", ({ channel, payload }) => heard.push([channel, payload]));
      await listener.query("listen booking_changes");
      await append("commits", 3);
      await append("rolls back", 3);
      await append("commits", 2);
      await waitFor(() => expect(heard.at(-1)).toEqual(["booking_changes", "5"]));
      // What was sent before is delivered before the answer to a query.
      await listener.query("select 1");
      expect(heard).toEqual([
        ["booking_changes", "3"],
        ["booking_changes", "5"],
      ]);
    } finally {
      await listener.end();
    }
  });
});

test("without its row, feed_position fails the transaction, rather than losing its changes", async () => {
  const { rows } = await pool.query("delete from feed_position returning last_id");
  const failed = inTransaction(pool, (client) => appendChanges(client, [aChange()]));
  await expect(failed).rejects.toThrow("The table feed_position must have its row.");
  await pool.query("insert into feed_position (last_id) values ($1)", [rows[0]?.last_id]);
});
