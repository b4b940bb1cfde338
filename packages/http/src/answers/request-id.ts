import { randomFillSync } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { v7 } from "uuid";

/** A client cannot reach a property with a symbol, whatever headers it sends. */
const key = Symbol("requestId");

/**
 * Returns the request's id. The answer has it as `X-Request-Id`, the log as `requestId`, and an accepted event as its
 * own id. It is made at the first call: when the event is about to be queued, or with the answer.
 */
export function requestIdOf(req: IncomingMessage & { [key]?: string }): string {
  req[key] ??= createRequestId();
  return req[key];
}

const idBytes = 16;
/** Random bytes are generated for this many ids at once, because most of the cost is the call itself. */
const idsPerFill = 256;

const random = new Uint8Array(idsPerFill * idBytes);
let used = random.length;

/** Returns a UUIDv7 (RFC 9562): the time in milliseconds, and 74 random bits. */
export function createRequestId(): string {
  if (used === random.length) {
    randomFillSync(random);
    used = 0;
  }
  used += idBytes;
  return v7({ random: random.subarray(used - idBytes, used) });
}
