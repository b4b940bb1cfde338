import { randomBytes, randomInt, randomUUID } from "node:crypto";
import type pg from "pg";
import { appendChanges } from "./booking-changes.ts";
import { insertEvents } from "./booking-events.ts";
import { bookingKey } from "./booking-key.ts";
import { insertBookings } from "./bookings.ts";
import { inTransaction, RollBack, setLockTimeout } from "./database.ts";

/** Much more than a server in good health needs for one row. */
const statementTimeoutMs = 5_000;
const lockTimeoutMs = 3_000;
/** Half the body limit. Random bytes, which PostgreSQL can't compress: they need space on its disk. */
const payloadBytes = 32_768;

/** The work is done and shall not stay. */
class TakenBack extends RollBack {
  override name = "TakenBack";
}

/**
 * Writes what applying an event writes, and takes it back.
 *
 * @throws what keeps PostgreSQL from taking events now, whatever they hold
 */
export async function probeWrites(pool: pg.Pool): Promise<void> {
  const [id, partner, sequence] = [randomUUID(), "probe", randomInt(1, 2 ** 47)];
  const key = bookingKey(partner, "trip", id);
  const at = new Date();
  const common = {
    bookingKey: key,
    partner,
    referenceKind: "trip",
    reference: id,
    sequence,
    contentDigest: key,
  } as const;
  try {
    await inTransaction(pool, async (client) => {
      await client.query(`set local statement_timeout to ${statementTimeoutMs}`);
      await setLockTimeout(client, lockTimeoutMs);
      const payload = JSON.stringify({ probe: randomBytes(payloadBytes).toString("base64") });
      const event = {
        kind: "create",
        idempotencyKey: null,
        outcome: "created",
        duplicateOf: null,
        warnings: [],
        after: null,
      } as const;
      await insertEvents(client, [{ ...common, ...event, id, payload, receivedAt: at }]);
      const state = { state: "active", eventId: id, contentEventId: id, contentSequence: null } as const;
      const times = { createdAt: at, updatedAt: at, deletedAt: null };
      await insertBookings(client, [{ ...common, ...state, ...times, lastSequence: sequence, keepsPayload: false }]);
      await appendChanges(client, [
        { partner, referenceKind: "trip", reference: id, change: "created", eventId: id, sequence },
      ]);
      throw new TakenBack();
    });
  } catch (error) {
    if (!(error instanceof TakenBack)) throw error;
  }
}
