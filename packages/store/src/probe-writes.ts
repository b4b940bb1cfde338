import { hash, randomBytes, randomInt, randomUUID } from "node:crypto";
import type { BookingState } from "@booking-events/bookings";
import type pg from "pg";
import { appendChanges } from "./booking-changes.ts";
import { insertEvents } from "./booking-events.ts";
import { bookingKey } from "./booking-key.ts";
import { insertBookings } from "./bookings.ts";
import { inTransaction, type Queryable, RollBack, setLockTimeout } from "./database.ts";
import { readLogHorizon } from "./log-horizon.ts";

/** A healthy server needs much less for one row. */
const statementTimeoutMs = 5_000;
const lockTimeoutMs = 3_000;
/** Half the body limit. The bytes are random, so PostgreSQL can't compress them and needs the space on its disk. */
const payloadBytes = 32_768;

/** Rolls the probe back after it has succeeded. */
class ProbeSucceeded extends RollBack {
  override name = "ProbeSucceeded";
}

/**
 * Reads and writes what applying an event does, and rolls it back.
 *
 * @throws what keeps PostgreSQL from taking any event at the moment
 */
export async function probeWrites(pool: pg.Pool): Promise<void> {
  try {
    await inTransaction(pool, async (client) => {
      await client.query(`set local statement_timeout to ${statementTimeoutMs}`);
      await setLockTimeout(client, lockTimeoutMs);
      await readLogHorizon(client);
      await writeEvent(client);
      throw new ProbeSucceeded();
    });
  } catch (error) {
    if (!(error instanceof ProbeSucceeded)) throw error;
  }
}

async function writeEvent(client: Queryable): Promise<void> {
  const [id, partner, sequence, at] = [randomUUID(), "probe", randomInt(1, 2 ** 47), new Date()];
  const booking = {
    partner,
    referenceKind: "trip",
    reference: id,
    bookingKey: bookingKey(partner, "trip", id),
  } as const;
  const payload = JSON.stringify({ probe: randomBytes(payloadBytes).toString("base64") });
  const digest = hash("sha256", payload, "hex").slice(0, 32);
  await insertEvents(client, [
    {
      ...{ ...booking, id, kind: "create", sequence, idempotencyKey: null, payload, contentDigest: digest },
      ...{ outcome: "created", duplicateOf: null, warnings: [], after: null, receivedAt: at },
    },
  ]);
  const state: BookingState = {
    ...{ state: "active", eventId: id, sequence, lastSequence: sequence },
    ...{ content: { digest, eventId: id, newestKeylessSequence: null } },
    ...{ createdAt: at, updatedAt: at, deletedAt: null },
  };
  await insertBookings(client, [{ ...booking, state, revision: 1, keepsPayload: false, guestHashes: [], trip: null }]);
  await appendChanges(client, [
    { ...booking, revision: 1, change: "created", eventId: id, sequence, previousEventId: null },
  ]);
}
