/**
 * Changes are missing: the program has not followed for so long that they were removed, or somebody deleted them or
 * restored the database.
 */
export class FeedGapError extends Error {
  override name = "FeedGapError";
  /** The last id before the gap. */
  readonly after: number;

  constructor(name: string, after: number, what: string) {
    super(`The feed has a gap after id ${after}: ${what} Start over from a snapshot: ops feed reset ${name}`);
    this.after = after;
  }
}

/** Bookings wait for `handle`, which `handleBatch` would never get. */
export class ParkedDeliveriesError extends Error {
  override name = "ParkedDeliveriesError";

  constructor(name: string) {
    super(
      `${name} has bookings that wait for another attempt of handle, and handleBatch would never get them. Run handle ` +
        `until none waits, and discard dead letters: ops feed dead-letters ${name}`,
    );
  }
}

/** The reader of this name belongs to another role of the database, which alone may move it. */
export class ForeignReaderError extends Error {
  override name = "ForeignReaderError";

  constructor(name: string, owner: string, role: string) {
    super(
      `The reader ${name} belongs to the role ${owner}, and this program connects as ${role}. Connect as ${owner}, or ` +
        "choose another name.",
    );
  }
}
