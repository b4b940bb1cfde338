import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
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

/** A real subscriber, which remembers all that it gets. */
export async function startSubscriber(): Promise<SubscriberServer> {
  const server = createServer(async (request, response) => {
    const body = await text(request);
    const post = { headers: toStrings(request.headers), body, event: JSON.parse(body) as WebhookEvent };
    subscriber.received.push(post);
    end(response, await subscriber.answer(post), () => subscriber.taken.push(post));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const subscriber: SubscriberServer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
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
