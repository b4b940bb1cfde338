import { IncomingMessage } from "node:http";

const upgrade = Symbol("upgrade");

/**
 * Returns a class for the `IncomingMessage` option of Node's HTTP server that stops the parser after the headers of the
 * first request that `mustStop` selects. Node then passes the connection to the listeners for `upgrade` or `connect`.
 *
 * Node reads up to 64 KiB at once and parses all of it before any other code runs: some 3,500 requests of `GET /x`, or
 * 11,000 chunks of one byte, each with its own objects. Pausing the socket only takes effect afterwards. The parser
 * stops in between only at a request to upgrade to another protocol, because what follows is not HTTP.
 *
 * This relies on undocumented behaviour of Node (lib/_http_server.js, parserOnIncoming, as of 24.21): after parsing the
 * headers, it reads the message's `upgrade` property and stops the parser if it is true. If that changes,
 * stop-parser.test.ts fails, and the server receives every request, as it does without this class.
 *
 * @param mustStop called once for each request, when its URL and headers are known
 */
export function stopParserAt(mustStop: (message: IncomingMessage) => boolean): typeof IncomingMessage {
  return class extends IncomingMessage {
    /** What Node assigns: whether the client asks for an upgrade. The base class does so before fields are initialized. */
    declare [upgrade]: boolean | null;
    #mustStop: boolean | undefined;

    get upgrade(): boolean | null {
      this.#mustStop ??= mustStop(this);
      return this.#mustStop || this[upgrade];
    }

    set upgrade(value: boolean | null) {
      this[upgrade] = value;
    }
  };
}
