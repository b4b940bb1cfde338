import { IncomingMessage } from "node:http";
import type { Socket } from "node:net";

/**
 * Returns a class for the `IncomingMessage` option of Node's HTTP server that stops the parser at the first request
 * that `mustStop` selects. Node then passes the connection to the listeners for `upgrade` or `connect`.
 *
 * Node reads up to 64 KiB at once and parses all of it before any other code runs: some 3,500 requests of `GET /x`,
 * each with its own objects. Pausing the socket only takes effect afterwards. The parser stops in between only at a
 * request to upgrade to another protocol, because what follows is not HTTP.
 *
 * This relies on undocumented behaviour of Node (lib/_http_server.js, parserOnIncoming, as of 24.21): after parsing the
 * headers, it reads the message's `upgrade` property and stops the parser if it is true. If that changes,
 * stop-parser.test.ts fails, and the server receives every request, as it does without this class.
 */
export function stopParserAt(mustStop: (socket: Socket) => boolean): typeof IncomingMessage {
  return class extends IncomingMessage {
    constructor(socket: Socket) {
      super(socket);
      // Other requests keep the plain property, which Node assigns from the client's headers.
      if (mustStop(socket)) Object.defineProperty(this, "upgrade", { get: () => true, set() {} });
    }
  };
}
