import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { startHealthServer } from "./health-server.ts";
import { createMetrics } from "./metrics.ts";

let server: Server;
let problems: string[];

beforeEach(async () => {
  problems = [];
  server = await startHealthServer({
    host: "127.0.0.1",
    port: 0,
    findProblems() {
      if (problems.includes("bug")) throw new Error("a bug");
      return problems;
    },
    findWarnings: () => ["The disk is nearly full."],
    metrics: createMetrics("test"),
  });
});

afterEach(async () => {
  server.close();
  server.closeAllConnections();
  await once(server, "close");
});

async function get(path: string): Promise<[status: number, type: string | null, text: string]> {
  const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`);
  return [response.status, response.headers.get("Content-Type"), await response.text()];
}

const json = "application/json; charset=utf-8";

test("a process is ready while it has no problems, and alive even then", async () => {
  expect(await get("/readyz")).toEqual([200, json, '{"ready":true,"warnings":["The disk is nearly full."]}']);
  problems = ["PostgreSQL is down."];
  const unready = '{"ready":false,"problems":["PostgreSQL is down."],"warnings":["The disk is nearly full."]}';
  expect(await get("/readyz")).toEqual([503, json, unready]);
  problems = ["bug"];
  expect(await get("/readyz")).toEqual([503, json, '{"ready":false,"problems":["The health check failed."]}']);
  expect(await get("/livez?now")).toEqual([200, json, '{"live":true}']);
});

test("metrics are in Prometheus' text format", async () => {
  const [status, type, text] = await get("/metrics");
  expect([status, type]).toEqual([200, "text/plain; version=0.0.4; charset=utf-8"]);
  expect(text).toMatch(/^booking_events_build_info\{version="[^"]+",node="[^"]+",process="test"\} 1$/m);
});
