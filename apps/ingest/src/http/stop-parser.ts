import { IncomingMessage } from "node:http";
import type { Socket } from "node:net";

/**
 * A class for the option `IncomingMessage` of Node's HTTP server, which makes the parser stop at the first request that
 * `mustStop` refuses. Node then hands the connection to the listeners for `upgrade` (or `connect`).
 *
 * Node reads up to 64 KiB at once and parses all of it before anything else runs: some 3,500 requests of `GET /x`, each
 * with its objects, whatever the server then does with them. Pausing the socket acts only after that. A request for
 * another protocol is the one thing at which the parser stops in between, since what follows is not HTTP.
 *
 * This relies on what Node does, not only on what it documents (lib/_http_server.js, parserOnIncoming, as of 24.21): it
 * asks the message for `upgrade` once it has the headers, and gives the parser what makes it stop. stop-parser.test.ts
 * fails when that changes. The server would then get every request, as it does without this class.
 */
export function stopParserAt(mustStop: (socket: Socket) => boolean): typeof IncomingMessage {
  return class extends IncomingMessage {
    constructor(socket: Socket) {
      super(socket);
      // Only here, so that no other request has an accessor. Node assigns what the client's headers say.
      if (mustStop(socket)) Object.defineProperty(this, "upgrade", { get: () => true, set() {} });
    }
  };
}
