import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

/** What the receiver does with one request. */
export type Step =
  | { status: number; headers?: Record<string, string>; body?: string | object }
  /** Reads the request and closes the connection without an answer. */
  | "disconnect"
  /** Sends the status, half of the body, and closes the connection. */
  | "cut"
  /** Never answers. */
  | "hang";

export interface ReceivedRequest {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
}

export interface ScriptedReceiver {
  url: string;
  /** In order of arrival. */
  requests: ReceivedRequest[];
  close(): Promise<void>;
}

/** Starts a server that does one step for each request, and repeats the last. It shows how a client deals with faults. */
export async function startScriptedReceiver(steps: readonly Step[]): Promise<ScriptedReceiver> {
  const requests: ReceivedRequest[] = [];
  const server = createServer(async (request, response) => {
    const { method = "", url = "", headers } = request;
    const body = await text(request);
    requests.push({ method, path: url, headers, body });
    perform(steps[Math.min(requests.length, steps.length) - 1] ?? "hang", response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

function perform(step: Step, response: ServerResponse): void {
  if (step === "hang") return;
  if (step === "disconnect") {
    response.destroy();
    return;
  }
  if (step === "cut") {
    response.writeHead(200, { "Content-Type": "application/json", "Content-Length": "100" });
    response.write('{"success":true,', () => response.destroy());
    return;
  }
  const { status, headers, body = "" } = step;
  const type = typeof body === "string" ? "text/html" : "application/json";
  response.writeHead(status, { "Content-Type": type, ...headers });
  response.end(typeof body === "string" ? body : JSON.stringify(body));
}
