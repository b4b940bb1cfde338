import pg from "pg";

export type FeedTables = ReturnType<typeof tablesIn>;

/** The names of the tables, with their schema. A consumer's own tables are looked up as its connection says. */
export function tablesIn(schema: string) {
  const quoted = pg.escapeIdentifier(schema);
  return {
    bookings: `${quoted}.bookings`,
    changes: `${quoted}.booking_changes`,
    deliveries: `${quoted}.feed_deliveries`,
    events: `${quoted}.booking_events`,
    handed: `${quoted}.feed_handed`,
    position: `${quoted}.feed_position`,
    readers: `${quoted}.feed_readers`,
    removeSpentDeliveries: `${quoted}.remove_spent_deliveries`,
  };
}
