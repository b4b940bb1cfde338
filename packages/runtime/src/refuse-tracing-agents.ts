import { channel } from "node:diagnostics_channel";
import { createRequire } from "node:module";
import { StartError } from "./start-error.ts";

// An import would load Node's fetch and WebSocket client.
const { Server } = process.getBuiltinModule("node:http");

/** Packages and folders of agents, as their names stand in options and paths. */
const agents = [
  "@opentelemetry/(?:auto-instrumentations-node|instrumentation[\\w-]*|sdk-node)",
  "otel-auto-instrumentation[\\w-]*",
  "@splunk/otel",
  "@elastic/opentelemetry-node",
  "@honeycombio/opentelemetry-node",
  "@azure/monitor-opentelemetry",
  "@aws/aws-distro-opentelemetry-node-autoinstrumentation",
  "@sentry/[\\w-]+",
  "@newrelic/[\\w-]+",
  "@instana/[\\w-]+",
  "@dynatrace/[\\w-]+",
  "@google-cloud/trace-agent",
  "dd-trace",
  "newrelic",
  "elastic-apm-node",
  "oneagent[\\w-]*",
  "appdynamics[\\w-]*",
  "applicationinsights",
  "solarwinds-apm",
  "atatus-nodejs",
  "signalfx-tracing",
  "skywalking-backend-js",
  "scout-apm",
  "aws-xray-sdk[\\w-]*",
  // What many agents use to change other modules.
  "(?:require|import)-in-the-middle",
];
const agentPattern = new RegExp(`(?:^|[\\s/\\\\="'])(${agents.join("|")})(?![\\w-])`, "i");

const globalNames = {
  OpenTelemetry: Symbol.for("opentelemetry.js.api.1"),
  "dd-trace": Symbol.for("dd-trace"),
  "elastic-apm-node": Symbol.for("ElasticAPMAgentInitialized"),
  Sentry: "__SENTRY__",
};

/**
 * Refuses to start beside an agent that records requests: it would export their paths, which contain secrets.
 * Called before anything of ours creates traces.
 *
 * @throws StartError
 */
export function refuseTracingAgents(environment: NodeJS.ProcessEnv): void {
  const agent = findTracingAgent(environment);
  if (agent === undefined) return;
  throw new StartError(
    `A tracing agent is loaded (${agent}). It would export the paths of requests, which contain the partners' secrets. ` +
      "Start this process without it: remove it from NODE_OPTIONS, or exclude this process from its injection. " +
      "Traces without secrets: docs/operations/watch.md.",
  );
}

function findTracingAgent(environment: NodeJS.ProcessEnv): string | undefined {
  const options = [environment["NODE_OPTIONS"] ?? "", environment["LD_PRELOAD"] ?? "", ...process.execArgv];
  const modules = Object.keys(createRequire(import.meta.url).cache);
  for (const text of [...options, ...modules]) {
    const [, name] = agentPattern.exec(text) ?? [];
    if (name !== undefined) return name;
  }
  for (const [name, key] of Object.entries(globalNames)) if (Reflect.has(globalThis, key)) return name;
  if (isServerWatched()) return "something unknown watches Node's HTTP server";
  return undefined;
}

/** As New Relic's and Sentry's agents do it. Node itself inherits `emit` from EventEmitter. */
function isServerWatched(): boolean {
  return Object.hasOwn(Server.prototype, "emit") || channel("http.server.request.start").hasSubscribers;
}
