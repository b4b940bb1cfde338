import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type RequestListener, type ServerResponse } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import type { Certificate } from "@booking-events/scripts/certificates";
import type { WebhookEvent } from "@booking-events/subscribers";

export interface Received {
  headers: Record<string, string>;
  body: string;
  event: WebhookEvent;
}

export interface SubscriberServer {
  url: string;
  /** Posts that were answered with 2xx, in that order. */
  taken: Received[];
  /** All posts. */
  received: Received[];
  /** Changes how it answers: with a status, or not at all until the promise is settled. */
  answer: (received: Received) => number | Promise<number>;
  close(): Promise<void>;
}

/**
 * A real subscriber, which remembers all that it gets.
 *
 * @param tls by default, it has http
 */
export async function startSubscriber(tls?: Certificate): Promise<SubscriberServer> {
  const listener: RequestListener = async (request, response) => {
    const body = await text(request);
    const post = { headers: toStrings(request.headers), body, event: JSON.parse(body) as WebhookEvent };
    subscriber.received.push(post);
    end(response, await subscriber.answer(post), () => subscriber.taken.push(post));
  };
  const server =
    tls === undefined ? createServer(listener) : createHttpsServer({ cert: tls.certificate, key: tls.key }, listener);
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  const subscriber: SubscriberServer = {
    url: tls === undefined ? `http://127.0.0.1:${port}/hook` : `https://localhost:${port}/hook`,
    taken: [],
    received: [],
    answer: () => 204,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return subscriber;
}

function end(response: ServerResponse, status: number, onTaken: () => void): void {
  if (status < 300 && !response.destroyed) onTaken();
  response.writeHead(status).end();
}

function toStrings(headers: IncomingHttpHeaders): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
}
