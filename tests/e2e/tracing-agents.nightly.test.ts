import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fromSource, startApp } from "@booking-events/harness/app-process";
import { afterAll, beforeAll, expect, test } from "vitest";

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "booking-events-agents-"));
  write("node_modules/dd-trace/init.js", "");
  write("node_modules/elastic-apm-node/start.js", "");
  write("loads-an-agent.cjs", 'require("elastic-apm-node/start");');
  write("is-sentry.mjs", "globalThis.__SENTRY__ = {};");
  write("is-opentelemetry.mjs", 'globalThis[Symbol.for("opentelemetry.js.api.1")] = {};');
  write("is-unknown.cjs", 'const { Server } = require("node:http"); Server.prototype.emit = Server.prototype.emit;');
  write(
    "listens.mjs",
    'import { subscribe } from "node:diagnostics_channel"; subscribe("http.server.request.start", () => {});',
  );
  write("is-harmless.mjs", "globalThis.ours = {};");
});
afterAll(() => rmSync(folder, { recursive: true }));

function write(path: string, text: string): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text);
}

/** Runs the app until it ends: it lacks the address of Redis or PostgreSQL, at the latest. */
async function start(app: "ingest" | "lookup" | "webhooks", options: string, args: string[] = []): Promise<string> {
  const environment = { NODE_OPTIONS: options.replaceAll("FOLDER", folder), NODE_PATH: join(folder, "node_modules") };
  const nodeArgs = args.map((arg) => arg.replaceAll("FOLDER", folder));
  const ended = await startApp([...nodeArgs, ...fromSource(`apps/${app}/src/main.ts`)], environment);
  expect(await ended.exited).toBe(1);
  return ended.output();
}

// Of the agents' names there are more in the tests of `refuseTracingAgents`.
test.each([
  ["ingest", "--require FOLDER/loads-an-agent.cjs", "elastic-apm-node"],
  ["ingest", "--import FOLDER/is-sentry.mjs", "Sentry"],
  ["ingest", "--import FOLDER/is-opentelemetry.mjs", "OpenTelemetry"],
  ["ingest", "--require FOLDER/is-unknown.cjs", "something unknown watches Node's HTTP server"],
  ["ingest", "--import FOLDER/listens.mjs", "something unknown watches Node's HTTP server"],
  ["lookup", "--require dd-trace/init", "dd-trace"],
  ["webhooks", "--require dd-trace/init", "dd-trace"],
] as const)("%s does not start with NODE_OPTIONS=%s, and says why and what to do", async (app, options, agent) => {
  const output = await start(app, options);
  expect(output).toContain(`Could not start. A tracing agent is loaded (${agent}).`);
  expect(output).toContain("remove it from NODE_OPTIONS");
  expect(output.trim().split("\n")).toHaveLength(1);
});

test("it does not start with an agent among Node's own arguments", async () => {
  expect(await start("ingest", "", ["--require", "dd-trace/init"])).toContain("A tracing agent is loaded (dd-trace).");
});

test("other preloads and options are left alone", async () => {
  const output = await start("ingest", "--max-old-space-size=400 --import FOLDER/is-harmless.mjs");
  expect(output).toContain("REDIS_URL");
  expect(output).not.toContain("tracing agent");
});
