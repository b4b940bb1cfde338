import { type BookingChange, follow, type HandlingContext, type SnapshotBooking } from "@booking-events/feed";

type Client = HandlingContext["client"];

/** What a program does that keeps a copy of all active bookings, in the table `copies`. */
export interface CopyParts {
  save: (reader: string, booking: BookingChange | SnapshotBooking, client: Client) => Promise<unknown>;
  deleteAll: (reader: string, client: Client) => Promise<unknown>;
}

const asDocumented: CopyParts = {
  save: (reader, booking, client) =>
    booking.payload === null
      ? client.query("delete from copies where reader = $1 and booking_id = $2", [reader, booking.bookingId])
      : insertCopy(reader, booking, client),
  deleteAll: (reader, client) => client.query("delete from copies where reader = $1", [reader]),
};

/**
 * Follows the feed until SIGTERM, as the README of the feed shows. PostgreSQL's URL and the reader's name are arguments
 * of the process.
 *
 * @param parts mistakes
 */
export async function keepCopy(parts: Partial<CopyParts> = {}): Promise<void> {
  const { save, deleteAll } = { ...asDocumented, ...parts };
  const [database = "", name = ""] = process.argv.slice(2);
  const stopping = new AbortController();
  process.once("SIGTERM", () => stopping.abort());
  await follow({
    name,
    database,
    from: "snapshot",
    pollIntervalMs: 100,
    signal: stopping.signal,
    logger: { info: () => {}, warn: () => {} },
    deleteAll: ({ client }) => deleteAll(name, client),
    async onSnapshot(bookings, { client }) {
      for (const booking of bookings) await save(name, booking, client);
    },
    async onChange(change, { client }) {
      await save(name, change, client);
    },
  });
}

export function insertCopy(reader: string, booking: BookingChange | SnapshotBooking, client: Client): Promise<unknown> {
  const { bookingId, partner, referenceKind, reference, payload } = booking;
  return client.query(
    `insert into copies values ($1, $2, $3, $4, $5, $6)
     on conflict (reader, booking_id) do update set payload = excluded.payload`,
    [reader, bookingId, partner, referenceKind, reference, JSON.stringify(payload)],
  );
}
