import type { IncomingMessage } from "node:http";
import { createEventId } from "./event-id.ts";

/** A client cannot reach a property with a symbol, whatever headers it sends. */
const key = Symbol("requestId");

/**
 * Returns the request's id. The answer has it as `X-Request-Id`, the log as `requestId`, and an accepted event as its
 * own id. It is made at the first call: when the event is about to be queued, or with the answer.
 */
export function requestIdOf(req: IncomingMessage & { [key]?: string }): string {
  req[key] ??= createEventId();
  return req[key];
}
