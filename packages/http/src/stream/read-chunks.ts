import type { IncomingMessage } from "node:http";
import { answers } from "@booking-events/schema";
import { Refusal } from "../answers/refusal.ts";
import { ClientGone } from "../app/partner-facing-app.ts";
import { type Pace, TooSlow } from "./pace.ts";

const newline = Buffer.from("\n");

/**
 * Reads a body of lines, only as fast as its chunks are used. Ends with a newline, so that the last line needs none.
 *
 * @param stopping its reason, a Refusal, is thrown while the client keeps us waiting
 * @throws Refusal if the body arrives too slowly; ClientGone
 */
export async function* readChunks(
  req: IncomingMessage,
  pace: Pace,
  stopping: AbortSignal = new AbortController().signal,
): AsyncGenerator<Buffer> {
  // Destroying the request would close the connection before a refusal is sent.
  const chunks: AsyncIterator<Buffer> = req.iterator({ destroyOnReturn: false });
  try {
    for (;;) {
      stopping.throwIfAborted();
      const { done, value } = await pace.wait(orAborted(chunks.next(), stopping));
      if (done) break;
      pace.add(value.length);
      yield value;
    }
  } catch (error) {
    if (error instanceof Refusal) throw error;
    throw error instanceof TooSlow ? new Refusal(answers.tooSlow) : new ClientGone();
  } finally {
    // Otherwise the rest of a refused body could not be discarded. The last call of `next` may never return.
    void chunks.return?.();
  }
  yield newline;
}

/** `Promise.race` would keep something of each chunk until the signal is aborted. */
function orAborted<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  const { promise, resolve, reject } = Promise.withResolvers<Result>();
  const abort = () => reject(signal.reason);
  signal.addEventListener("abort", abort);
  work.then(resolve, reject);
  return promise.finally(() => signal.removeEventListener("abort", abort));
}
