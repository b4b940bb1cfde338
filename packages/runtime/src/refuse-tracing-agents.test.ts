import { afterEach, beforeEach, expect, test } from "vitest";
import { refuseTracingAgents } from "./refuse-tracing-agents.ts";

/** What other test files of this process registered. */
const openTelemetry = Symbol.for("opentelemetry.js.api.1");
let registered: unknown;

beforeEach(() => {
  registered = Reflect.get(globalThis, openTelemetry);
  Reflect.deleteProperty(globalThis, openTelemetry);
});

afterEach(() => {
  if (registered !== undefined) Reflect.set(globalThis, openTelemetry, registered);
});

test.each([
  ["--require @opentelemetry/auto-instrumentations-node/register", "@opentelemetry/auto-instrumentations-node"],
  ["--require=/otel-auto-instrumentation-nodejs/autoinstrumentation.js", "otel-auto-instrumentation-nodejs"],
  ["--experimental-loader @opentelemetry/instrumentation/hook.mjs", "@opentelemetry/instrumentation"],
  ["-r dd-trace/init", "dd-trace"],
  ["--import dd-trace/initialize.mjs", "dd-trace"],
  ['--max-old-space-size=400 --require "/datadog-lib/node_modules/dd-trace/init"', "dd-trace"],
  ["--require newrelic", "newrelic"],
  ["-r elastic-apm-node/start.js", "elastic-apm-node"],
  ["--import @sentry/node/preload", "@sentry/node"],
  ["--require @splunk/otel/instrument", "@splunk/otel"],
  ["--require /opt/appdynamics-nodejs/shim.js", "appdynamics-nodejs"],
  ["--require @instana/collector/src/immediate", "@instana/collector"],
  ["--require C:\\apm\\node_modules\\applicationinsights\\out\\index.js", "applicationinsights"],
])("%s is refused, with the agent's name", (NODE_OPTIONS, name) => {
  expect(() => refuseTracingAgents({ NODE_OPTIONS })).toThrow(`A tracing agent is loaded (${name}).`);
});

test("what Dynatrace adds to a process from outside is refused", () => {
  const LD_PRELOAD = "/$LIB/liboneagentproc.so /opt/dynatrace/oneagent/agent/lib64/liboneagentproc.so";
  expect(() => refuseTracingAgents({ LD_PRELOAD })).toThrow("A tracing agent is loaded (oneagent).");
});

test.each([
  [undefined],
  [""],
  ["--max-old-space-size=400 --enable-source-maps --title=ingest"],
  ["--require /srv/our-dd-trace-free/preload.js"],
  ["--require /srv/newrelicts/preload.js"],
])("%s is not", (NODE_OPTIONS) => expect(() => refuseTracingAgents({ NODE_OPTIONS })).not.toThrow());
