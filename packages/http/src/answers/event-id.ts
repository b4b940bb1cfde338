import { randomFillSync } from "node:crypto";
import { v7 } from "uuid";

const idBytes = 16;
/** Random bytes are generated for this many ids at once, because most of the cost is the call itself. */
const idsPerFill = 256;

const random = new Uint8Array(idsPerFill * idBytes);
let used = random.length;

/** A UUIDv7 (RFC 9562): the time in milliseconds, and 74 random bits. */
export function createEventId(): string {
  if (used === random.length) {
    randomFillSync(random);
    used = 0;
  }
  used += idBytes;
  return v7({ random: random.subarray(used - idBytes, used) });
}
