import type { IncomingMessage } from "node:http";

/** A body with more pieces than this must have larger ones. Clients that write each value by itself have fewer. */
const maxSmallPieces = 1_000;
/** Pieces after these are joined. Most bodies have one or two. */
const unjoinedPieces = 16;
/** How many bytes are joined at once, within a turn of the event loop. */
const joinedBytes = 4_096;

/**
 * Extends a class for the `IncomingMessage` option of Node's HTTP server, so that the pieces of a body are joined. Node
 * makes a buffer for each chunk, which takes some 330 bytes, and whoever reads the body keeps all of them: 25 bodies of
 * 60,000 chunks of one byte filled a heap of 320 MB.
 *
 * @param minPieceBytes of a body in more than 1,000 pieces, the average size of these may not be smaller
 * @param refuse called once for a body whose pieces are smaller. The rest of it is ignored
 */
export function joinChunks(
  Base: typeof IncomingMessage,
  minPieceBytes: number,
  refuse: (message: IncomingMessage) => void,
): typeof IncomingMessage {
  return class extends Base {
    #pieces = 0;
    #bytes = 0;
    #isRefused = false;
    #unjoined: Buffer[] = [];
    #unjoinedBytes = 0;

    override push(chunk: Buffer | null): boolean {
      if (chunk === null) {
        this.#join();
        return super.push(null);
      }
      this.#pieces += 1;
      this.#bytes += chunk.length;
      if (this.#pieces > maxSmallPieces && this.#bytes < this.#pieces * minPieceBytes) return this.#refuse();
      if (this.#pieces <= unjoinedPieces || chunk.length > joinedBytes) {
        this.#join();
        return super.push(chunk);
      }
      if (this.#unjoined.length === 0) setImmediate(() => this.#join());
      this.#unjoined.push(chunk);
      this.#unjoinedBytes += chunk.length;
      return this.#unjoinedBytes < joinedBytes || this.#join();
    }

    #join(): boolean {
      if (this.#unjoined.length === 0) return true;
      const joined = Buffer.concat(this.#unjoined);
      this.#unjoined = [];
      this.#unjoinedBytes = 0;
      return super.push(joined);
    }

    /** Node reads no more from the socket when `push` has returned false. */
    #refuse(): false {
      if (!this.#isRefused) {
        this.#isRefused = true;
        // Node is still parsing.
        setImmediate(refuse, this);
      }
      return false;
    }
  };
}
