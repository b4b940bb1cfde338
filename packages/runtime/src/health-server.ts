import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { listen } from "./listen.ts";
import type { Registry } from "./metrics.ts";

// To import a value from node:http reads all of its exports, and the getter of one loads Node's fetch and WebSocket
// client. That is a tenth of a worker's or an operator's command's start.
const { createServer } = process.getBuiltinModule("node:http");

/** Returns why a process is not ready, as sentences for an operator. Empty if it is ready. */
export type FindProblems = () => Promise<string[]> | string[];

/** Returns what an operator should check although the process is ready, as sentences. */
export type FindWarnings = () => string[];

interface Health {
  findProblems: FindProblems;
  findWarnings?: FindWarnings;
  metrics: Registry;
}

/**
 * Serves health and metrics on a port of its own:
 * - `GET /livez`: 200 while the event loop runs. Restart the process only if this fails.
 * - `GET /readyz`: 200 `{"ready": true}`, or 503 `{"ready": false, "problems": ["…"]}`. Both have `"warnings": ["…"]`
 *   if there are any.
 * - `GET /metrics`: in Prometheus' text format.
 *
 * @returns the listening server
 * @throws StartError if the server cannot listen on the port
 */
export async function startHealthServer(options: Health & { host: string; port: number }): Promise<Server> {
  const server = createServer((request, response) => {
    answer(request, response, options).catch(() => {
      // A check that throws is a bug, but the probe must not hang because of it.
      sendJson(response, 503, { ready: false, problems: ["The health check failed."] });
    });
  });
  server.requestTimeout = 5_000;
  server.headersTimeout = 5_000;
  await listen(server, { host: options.host, port: options.port, prefix: "ADMIN_" });
  return server;
}

async function answer({ url = "" }: IncomingMessage, response: ServerResponse, health: Health): Promise<void> {
  const { findProblems, findWarnings = () => [], metrics } = health;
  switch (url.split("?", 1)[0]) {
    case "/livez":
      return sendJson(response, 200, { live: true });
    case "/readyz": {
      const problems = await findProblems();
      const warnings = findWarnings();
      const detail = warnings.length === 0 ? {} : { warnings };
      return problems.length === 0
        ? sendJson(response, 200, { ready: true, ...detail })
        : sendJson(response, 503, { ready: false, problems, ...detail });
    }
    case "/metrics": {
      const text = await metrics.metrics();
      response.writeHead(200, { "Content-Type": metrics.contentType }).end(text);
      return;
    }
    default:
      return sendJson(response, 404, { message: "No such path. Use /livez, /readyz or /metrics." });
  }
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  if (response.headersSent) return;
  response.writeHead(status, { "Content-Type": "application/json; charset=utf-8" }).end(JSON.stringify(body));
}
