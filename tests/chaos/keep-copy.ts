import { type BookingChange, type Delivery, type DeliveryContext, deliver } from "@booking-events/feed";

type Client = DeliveryContext["client"];

/** What a program does that keeps a copy of all active bookings, in the table `copies`. */
export type Save = (reader: string, delivery: Delivery, client: Client) => Promise<unknown>;

/**
 * Keeps a copy until SIGTERM, as the README of the feed shows. PostgreSQL's URL and the reader's name are arguments of the
 * process.
 *
 * @param save a mistake
 */
export async function keepCopy(save: Save = saveAsDocumented): Promise<void> {
  const [database = "", name = ""] = process.argv.slice(2);
  const stopping = new AbortController();
  process.once("SIGTERM", () => stopping.abort());
  await deliver({
    name,
    database,
    from: "snapshot",
    pollIntervalMs: 100,
    signal: stopping.signal,
    logger: { info: () => {}, warn: () => {} },
    async handle(delivery, { client }) {
      await save(name, delivery, client);
    },
  });
}

export const saveAsDocumented: Save = (reader, { change }, client) =>
  change.payload === null
    ? client.query("delete from copies where reader = $1 and booking_id = $2", [reader, change.bookingId])
    : insertCopy(reader, change, client);

export function insertCopy(reader: string, change: BookingChange, client: Client): Promise<unknown> {
  const { bookingId, partner, referenceKind, reference, payload } = change;
  return client.query(
    `insert into copies values ($1, $2, $3, $4, $5, $6)
     on conflict (reader, booking_id) do update set payload = excluded.payload`,
    [reader, bookingId, partner, referenceKind, reference, JSON.stringify(payload)],
  );
}
