/** How far a consumer has come. */
export interface Place {
  /** The last change that is done, with all before it. During a snapshot: the position of the feed when that began. */
  lastId: number;
  /** The last booking of the snapshot that is done, with all before it. Null: no snapshot is under way. */
  snapshotAfter: string | null;
}

/** Before the id of every booking. */
export const beforeAllBookings = "00000000-0000-0000-0000-000000000000";
