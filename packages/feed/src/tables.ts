import pg from "pg";

/** The names of the tables, with their schema. A consumer's own tables are looked up as its connection says. */
export interface FeedTables {
  bookings: string;
  changes: string;
  cursors: string;
  events: string;
  position: string;
}

export function tablesIn(schema: string): FeedTables {
  const quoted = pg.escapeIdentifier(schema);
  return {
    bookings: `${quoted}.bookings`,
    changes: `${quoted}.booking_changes`,
    cursors: `${quoted}.feed_cursors`,
    events: `${quoted}.booking_events`,
    position: `${quoted}.feed_position`,
  };
}
