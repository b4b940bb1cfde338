import { sampleEvent } from "@booking-events/harness/sample-event";
import { untilBlocked, useTestDatabase } from "@booking-events/harness/test-database";
import {
  type BookingToErase,
  beginErasure,
  type DeadLetterToWrite,
  type DigestKey,
  eraseBooking,
  openDigestKey,
  probeWrites,
  readDatabaseIdentity,
} from "@booking-events/store";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { OutageGate } from "../outages/wait-out-outage.ts";
import { DeadLetters } from "./dead-letters.ts";

const { pool, testPool } = useTestDatabase({ maxConnections: 4 });
let digestKey: DigestKey;
let database: string;
beforeAll(async () => {
  digestKey = await openDigestKey(pool, undefined);
  database = (await readDatabaseIdentity(pool)).id;
});
beforeEach(() => pool.query("truncate bookings, booking_events, dead_letters"));

const envelope = sampleEvent(1, { payload: { consumerTripPartnerExternalReference: "CANARY" } });
const { eventId, sequence } = envelope;
const letter: DeadLetterToWrite = {
  eventId,
  partner: "acme",
  kind: "create",
  referenceKind: "trip",
  reference: "CANARY",
  sequence,
  errorCode: "22012",
  error: "PostgreSQL can't hold it.",
  attempts: 1,
  envelope: Buffer.from(JSON.stringify(envelope)),
};

const outageGate = new OutageGate({
  probe: () => probeWrites(pool),
  onChange() {},
  signal: new AbortController().signal,
});
const write = () =>
  new DeadLetters({ pool, testPool, outageGate, digestKey: () => digestKey, database: () => database }).writeLetter(
    letter,
    false,
  );

async function erase() {
  const erasureId = await beginErasure(pool, { by: "test", reason: "test", search: "email" });
  const event = { id: eventId, sequence, receivedAt: new Date(envelope.receivedAt) };
  const booking: BookingToErase = { partner: "acme", referenceKind: "trip", reference: "CANARY", event };
  return eraseBooking(pool, digestKey, booking, { erasureId, by: "test" });
}

describe("an event of an erased booking that can't be applied", () => {
  test("leaves no dead letter, and is recorded without its content", async () => {
    await erase();
    expect(await write()).toBe("erased");
    expect((await pool.query("select from dead_letters")).rowCount).toBe(0);
    const { rows } = await pool.query("select id, outcome, payload from booking_events");
    expect(rows).toEqual([{ id: eventId, outcome: "erased", payload: null }]);
  });

  test("leaves an empty dead letter if it is written while the booking is being erased", async () => {
    const blocker = await pool.connect();
    try {
      await blocker.query("begin; lock table dead_letters in share mode");
      const writing = write();
      await untilBlocked(pool, 1);
      const erasing = erase();
      await untilBlocked(pool, 2);
      await blocker.query("rollback");
      expect(await writing).toBeUndefined();
      expect(await erasing).toMatchObject({ deadLetters: 1 });
      const { rows } = await pool.query("select envelope, reference, resolution from dead_letters");
      expect(rows).toEqual([{ envelope: Buffer.alloc(0), reference: null, resolution: "erased" }]);
    } finally {
      blocker.release(true);
    }
  });
});
