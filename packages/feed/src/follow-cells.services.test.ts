import { waitFor } from "@booking-events/harness";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { appendChanges, inTransaction } from "@booking-events/store";
import { beforeEach, expect, test } from "vitest";
import { FeedGapError } from "./errors.ts";
import { followCells } from "./follow-cells.ts";

const [north, south] = [useTestDatabase(), useTestDatabase()];
const cells = [
  { name: "north", database: north.url },
  { name: "south", database: south.url },
];
const logger = { info: () => {}, warn: () => {} };

beforeEach(async () => {
  for (const { pool } of [north, south])
    await pool.query("truncate booking_changes, feed_cursors; update feed_position set last_id = 0");
});

let number = 0;

async function append({ pool }: typeof north, count: number): Promise<void> {
  for (let added = 0; added < count; added += 1) {
    number += 1;
    const subject = { partner: "acme", referenceKind: "trip", reference: `TRIP-${number}`, revision: 1 } as const;
    const eventId = `0199a000-0000-7000-8000-${String(number).padStart(12, "0")}`;
    const change = { ...subject, change: "created", eventId, sequence: number, previousEventId: null } as const;
    await inTransaction(pool, (client) => appendChanges(client, [change]));
  }
}

test("one handler gets the changes of all cells with their names, and each cell has a cursor of its own", async () => {
  const stopping = new AbortController();
  const handled: string[] = [];
  const following = followCells({
    ...{ name: "reader", cells, signal: stopping.signal, logger },
    onChange: async ({ id }, { cell, client }) => {
      await client.query("update feed_cursors set name = name");
      handled.push(`${cell} ${id}`);
    },
  });
  await append(north, 3);
  await append(south, 2);
  await waitFor(() => handled.length === 5);
  expect(handled.filter((one) => one.startsWith("north"))).toEqual(["north 1", "north 2", "north 3"]);
  expect(handled.filter((one) => one.startsWith("south"))).toEqual(["south 1", "south 2"]);
  stopping.abort();
  await following;
  const places = await Promise.all(
    [north, south].map(async ({ pool }) => (await pool.query("select name, last_id as last from feed_cursors")).rows),
  );
  expect(places).toEqual([[{ name: "reader", last: 3 }], [{ name: "reader", last: 2 }]]);
});

test("a cell whose database is down does not stop the others", async () => {
  const stopping = new AbortController();
  const handled: string[] = [];
  const following = followCells({
    ...{ name: "reader", signal: stopping.signal, logger },
    cells: [{ name: "gone", database: "postgres://127.0.0.1:1/gone" }, ...cells],
    onChange: async ({ id }, { cell }) => void handled.push(`${cell} ${id}`),
  });
  await append(south, 2);
  await waitFor(() => expect(handled).toEqual(["south 1", "south 2"]));
  stopping.abort();
  await following;
});

test("what ends following one cell ends all, and is thrown", async () => {
  const handled: number[] = [];
  const following = followCells({
    ...{ name: "reader", cells, signal: new AbortController().signal, logger },
    onChange: async ({ id }) => void handled.push(id),
  });
  await append(south, 2);
  await waitFor(() => handled.length === 2);
  await south.pool.query("update feed_position set last_id = 1");
  await expect(following).rejects.toThrow(FeedGapError);
});

test("cells need names of their own", async () => {
  const options = { name: "reader", signal: new AbortController().signal, logger, onChange: async () => {} };
  await expect(followCells({ ...options, cells: [] })).rejects.toThrow(TypeError);
  await expect(followCells({ ...options, cells: [...cells, ...cells] })).rejects.toThrow(TypeError);
});
