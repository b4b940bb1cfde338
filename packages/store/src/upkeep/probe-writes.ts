import { hash, randomBytes, randomInt, randomUUID } from "node:crypto";
import type { BookingState } from "@booking-events/bookings";
import type pg from "pg";
import type { Queryable } from "../connect/queryable.ts";
import { inTransaction } from "../connect/transaction.ts";
import { setLockTimeout } from "../connect/transaction-limits.ts";
import { appendChanges } from "../tables/booking-changes.ts";
import { insertEvents } from "../tables/booking-events.ts";
import { bookingKey } from "../tables/booking-key.ts";
import { readLogHorizon } from "../tables/log-horizon.ts";
import { insertBookings } from "../tables/save-bookings.ts";

/** A healthy server needs much less for one row. */
const statementTimeoutMs = 5_000;
const lockTimeoutMs = 3_000;
/** Half the body limit. The bytes are random, so PostgreSQL can't compress them and needs the space on its disk. */
const payloadBytes = 32_768;

/**
 * Reads and writes what applying an event does, and rolls it back. Then it commits the lock of a row. While a standby
 * that PostgreSQL must wait for is missing, everything works but the commit.
 *
 * @param database the id that the database must have. Default: any
 * @throws what keeps PostgreSQL from taking any event at the moment
 */
export async function probeWrites(pool: pg.Pool, database?: string): Promise<void> {
  await inTransaction(pool, async (client) => {
    await client.query(`set local statement_timeout to ${statementTimeoutMs}`);
    await setLockTimeout(client, lockTimeoutMs);
    await readLogHorizon(client, database);
    await client.query("savepoint before_event");
    await writeEvent(client);
    await client.query("rollback to savepoint before_event");
    // PostgreSQL keeps the lock while the commit waits, even if nobody listens any more. So one probe waits at a time.
    await client.query("select from feed_position for update");
  });
}

async function writeEvent(client: Queryable): Promise<void> {
  const [id, partner, sequence, at] = [randomUUID(), "probe", randomInt(1, 2 ** 47), new Date()];
  const booking = {
    partner,
    referenceKind: "trip",
    reference: id,
    bookingKey: bookingKey(partner, "trip", id),
  } as const;
  const sent = { consumerTripPartnerExternalReference: id, probe: randomBytes(payloadBytes).toString("base64") };
  const payload = JSON.stringify(sent);
  const digest = hash("sha256", payload, "hex").slice(0, 32);
  await insertEvents(client, [
    {
      ...booking,
      id,
      kind: "create",
      sequence,
      idempotencyKey: null,
      payload,
      contentDigest: digest,
      outcome: "created",
      duplicateOf: null,
      warnings: [],
      after: null,
      receivedAt: at,
    },
  ]);
  const state: BookingState = {
    state: "active",
    eventId: id,
    sequence,
    content: { digest, eventId: id, newestKeylessSequence: null },
    lastSequence: sequence,
    createdAt: at,
    updatedAt: at,
    deletedAt: null,
  };
  const bookingId = randomUUID();
  await insertBookings(client, [
    { ...booking, bookingId, state, revision: 1, guestHashes: [], newContent: { payload: sent, defaultCountry: null } },
  ]);
  await appendChanges(client, [
    { ...booking, bookingId, revision: 1, change: "created", eventId: id, sequence, previousEventId: null },
  ]);
}
