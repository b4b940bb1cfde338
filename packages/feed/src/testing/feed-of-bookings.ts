import { randomUUID } from "node:crypto";
import { appendChanges, type FeedChange, inTransaction, type Queryable } from "@booking-events/store";
import type pg from "pg";

interface TestBooking {
  bookingId: string;
  reference: string;
  partner: string;
  revision: number;
  eventId: string | null;
  state: "active" | "deleted" | "none";
  isErased: boolean;
}

/** Bookings that change as the worker and ops change them: in the tables of bookings, of the log and of the feed. */
export class FeedOfBookings {
  readonly #pool: pg.Pool;
  readonly #bookings = new Map<string, TestBooking>();
  #sequence = 0;

  constructor(pool: pg.Pool) {
    this.#pool = pool;
  }

  async clear(): Promise<void> {
    this.#bookings.clear();
    await this.#pool.query("truncate booking_changes, booking_events, bookings, feed_readers cascade");
    await this.#pool.query("update feed_position set last_id = 0, kept_from = 1");
  }

  idOf(reference: string): string {
    return this.#bookings.get(reference)?.bookingId ?? "unknown";
  }

  referenceOf(bookingId: string): string {
    for (const booking of this.#bookings.values()) if (booking.bookingId === bookingId) return booking.reference;
    return "unknown";
  }

  /** Creates or changes a booking. @returns the change's id */
  async save(
    reference: string,
    payload: object = {},
    more: { partner?: string; ageMs?: number } = {},
  ): Promise<number> {
    const booking = this.#bookingOf(reference, more.partner);
    const change = booking.state === "none" ? "created" : booking.state === "deleted" ? "recreated" : "updated";
    return this.#change(booking, change, { consumerTripPartnerExternalReference: reference, ...payload }, more.ageMs);
  }

  async delete(reference: string): Promise<number> {
    return this.#change(this.#bookingOf(reference), "deleted", {});
  }

  /** As ops erases a guest. @returns the change's id */
  async erase(reference: string): Promise<number> {
    const booking = this.#bookingOf(reference);
    const { bookingId } = booking;
    booking.isErased = true;
    return inTransaction(this.#pool, async (client) => {
      await client.query("update booking_events set payload = null, reference = 'erased' where booking_key = $1", [
        keyOf(bookingId),
      ]);
      await client.query(
        `update bookings set payload = null, reference = 'erased-' || booking_id, state = 'deleted', erased_at = now(),
           deleted_at = coalesce(deleted_at, now()), revision = revision + 1
         where booking_id = $1`,
        [bookingId],
      );
      await client.query("update booking_changes set reference = null where booking_id = $1", [bookingId]);
      return this.#append(client, booking, "erased", booking.eventId ?? randomUUID());
    });
  }

  #bookingOf(reference: string, partner = "acme"): TestBooking {
    const known = this.#bookings.get(reference);
    if (known !== undefined) return known;
    const booking: TestBooking = {
      bookingId: randomUUID(),
      reference,
      partner,
      revision: 0,
      eventId: null,
      state: "none",
      isErased: false,
    };
    this.#bookings.set(reference, booking);
    return booking;
  }

  #change(booking: TestBooking, change: FeedChange, payload: object, ageMs = 0): Promise<number> {
    const eventId = randomUUID();
    this.#sequence += 1;
    return inTransaction(this.#pool, async (client) => {
      const { bookingId, partner, reference } = booking;
      await client.query(
        `insert into booking_events (id, partner, kind, reference_kind, reference, booking_key, sequence, payload,
           content_digest, outcome, received_at)
         values ($1, $2, $3, 'trip', $4, $5, $6, $7, '\\x00', 'updated', now())`,
        [
          eventId,
          partner,
          change === "deleted" ? "delete" : "update",
          reference,
          keyOf(bookingId),
          this.#sequence,
          payload,
        ],
      );
      await client.query(
        `insert into bookings (booking_key, booking_id, partner, reference_kind, reference, state, event_id, sequence,
           last_sequence, revision, payload, created_at, updated_at, deleted_at)
         values ($1, $2, $3, 'trip', $4, $5, $6, $7, $7, 1, $8, now(), now(), $9)
         on conflict (booking_key) do update set state = excluded.state, event_id = excluded.event_id,
           sequence = excluded.sequence, revision = bookings.revision + 1, payload = excluded.payload,
           updated_at = now(), deleted_at = excluded.deleted_at`,
        [
          ...[keyOf(bookingId), bookingId, partner, reference, change === "deleted" ? "deleted" : "active"],
          ...[eventId, this.#sequence, payload, change === "deleted" ? new Date() : null],
        ],
      );
      const id = await this.#append(client, booking, change, eventId);
      if (ageMs > 0)
        await client.query(
          "update booking_changes set changed_at = now() - make_interval(secs => $2::float8 / 1000) where id = $1",
          [id, ageMs],
        );
      return id;
    });
  }

  async #append(client: Queryable, booking: TestBooking, change: FeedChange, eventId: string): Promise<number> {
    booking.revision += 1;
    const { bookingId, partner, reference, isErased, revision, eventId: previousEventId } = booking;
    await appendChanges(client, [
      {
        bookingId,
        partner,
        referenceKind: "trip",
        reference: isErased ? null : reference,
        revision,
        change,
        eventId,
        sequence: this.#sequence,
        previousEventId,
      },
    ]);
    booking.eventId = eventId;
    booking.state = change === "deleted" || change === "erased" ? "deleted" : "active";
    const { rows } = await client.query<{ id: number }>("select last_id::float8 as id from feed_position");
    return rows[0]?.id ?? 0;
  }
}

function keyOf(bookingId: string): Buffer {
  return Buffer.from(bookingId.replaceAll("-", ""), "hex");
}
