import { randomUUID } from "node:crypto";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { beforeEach, expect, test } from "vitest";
import { tablesIn } from "../tables.ts";
import { type Progress, recordProgress } from "./deliveries.ts";

const { pool } = useTestDatabase({ maxConnections: 1 });
const [lost, held, booking] = [randomUUID(), randomUUID(), randomUUID()];

beforeEach(() =>
  pool.query(
    `truncate feed_readers cascade; insert into feed_readers (name, last_id, active_id) values ('test', 5, '${held}')`,
  ),
);

const progress = (token: string, doneId: number): Progress => ({
  ...{ name: "test", token, place: { lastId: doneId - 1, snapshotAfter: null }, isWorking: true, breaker: null },
  rows: [{ bookingId: booking, doneId, waiting: null }],
});

const readPlaces = async () =>
  (
    await pool.query(
      `select last_id::int as place, done_id::int as done from feed_readers left join feed_deliveries on reader = name`,
    )
  ).rows;

test("a consumer that has lost its lease writes nothing, though one of its name holds it in the same process", async () => {
  const [ofLost, ofHeld] = [progress(lost, 8), progress(held, 7)];
  expect(await recordProgress(pool, tablesIn("public"), [ofLost, { ...ofHeld, rows: [] }])).toHaveLength(1);
  expect(await readPlaces()).toEqual([{ place: 6, done: null }]);
});

test("both may have dealt with the same booking", async () => {
  const [ofLost, ofHeld] = [progress(lost, 8), progress(held, 7)];
  expect(await recordProgress(pool, tablesIn("public"), [ofLost, ofHeld])).toEqual([ofHeld]);
  expect(await readPlaces()).toEqual([{ place: 6, done: 7 }]);
});
