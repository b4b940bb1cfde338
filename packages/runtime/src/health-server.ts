import { createServer, type Server, type ServerResponse } from "node:http";
import { listen } from "./listen.ts";
import type { Registry } from "./metrics.ts";

/** Why a process can't do its work now, as sentences for an operator. Empty: it is ready. */
export type FindProblems = () => Promise<string[]> | string[];

/** What an operator should look at although the process does its work, as sentences. */
export type FindWarnings = () => string[];

/**
 * Serves, apart from the partners' traffic:
 * - `GET /livez`: 200 while the process runs its event loop. Restart it only when this fails.
 * - `GET /readyz`: 200 `{"ready": true}`, or 503 `{"ready": false, "problems": ["…"]}`; with `"warnings": ["…"]` in
 *   either, if there are any.
 * - `GET /metrics`: Prometheus' text format.
 *
 * @returns the listening server
 * @throws StartError when the port can't be had
 */
export async function startHealthServer(options: {
  host: string;
  port: number;
  findProblems: FindProblems;
  findWarnings?: FindWarnings;
  metrics: Registry;
}): Promise<Server> {
  const server = createServer((request, response) => {
    answer(request.url ?? "", response, options).catch(() => {
      // A check that throws is a bug, but the probe must not hang because of it.
      sendJson(response, 503, { ready: false, problems: ["The health check itself failed."] });
    });
  });
  server.requestTimeout = 5_000;
  server.headersTimeout = 5_000;
  const variables = { host: "ADMIN_HOST", port: "ADMIN_PORT" };
  await listen(server, { host: options.host, port: options.port, variables });
  return server;
}

async function answer(
  url: string,
  response: ServerResponse,
  {
    findProblems,
    findWarnings = () => [],
    metrics,
  }: { findProblems: FindProblems; findWarnings?: FindWarnings; metrics: Registry },
): Promise<void> {
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
    case "/metrics":
      response.writeHead(200, { "Content-Type": metrics.contentType }).end(await metrics.metrics());
      return;
    default:
      return sendJson(response, 404, { message: "No such path. Use /livez, /readyz or /metrics." });
  }
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  if (response.headersSent) return;
  response.writeHead(status, { "Content-Type": "application/json; charset=utf-8" }).end(JSON.stringify(body));
}
