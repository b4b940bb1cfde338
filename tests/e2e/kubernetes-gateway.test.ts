import { readFileSync } from "node:fs";
import { parseEnvironment, variables } from "@booking-events/runtime";
import { describe, expect, test } from "vitest";
import { find as findNamed, rendered } from "./kubernetes-manifests.ts";
import { type Manifest, podSpecOf } from "./render-kustomization.ts";

function find(kind: string): Manifest {
  const [found, ...others] = rendered.example.filter((object) => object.kind === kind);
  if (found === undefined || others.length > 0) throw new Error(`not one ${kind}`);
  return found;
}

const gateway = find("Gateway");
const { parentRefs, rules } = find("HTTPRoute")["spec"] as { parentRefs: { name: string }[]; rules: Rule[] };
const client = find("ClientTrafficPolicy")["spec"];
const backend = find("BackendTrafficPolicy")["spec"];

interface Rule {
  matches: { path: { type: "Exact" | "PathPrefix"; value: string } }[];
  timeouts: { request: string };
  backendRefs: { name: string; port: number }[];
}

/** The rule of a path, as Gateway API chooses it: an exact one, or else the longest prefix of whole segments. */
function ruleOf(path: string): Rule | undefined {
  const matching = rules.flatMap((rule) =>
    rule.matches.filter(({ path: match }) => isMatch(match, path)).map(({ path: match }) => ({ rule, match })),
  );
  const weight = ({ type, value }: { type: string; value: string }) => (type === "Exact" ? Infinity : value.length);
  return matching.toSorted((a, b) => weight(b.match) - weight(a.match))[0]?.rule;
}

function isMatch({ type, value }: { type: string; value: string }, path: string): boolean {
  return type === "Exact" ? path === value : `${path}/`.startsWith(value.endsWith("/") ? value : `${value}/`);
}

const serviceOf = (path: string) =>
  ruleOf(path)
    ?.backendRefs.map(({ name }) => name)
    .join();
const secondsOf = (duration: string) => Number(/^(\d+)s$/.exec(duration)?.[1]);

describe("the gateway sends", () => {
  const caddyfile = readFileSync("deploy/Caddyfile", "utf8");
  const questions = /^\t@question path (.+)$/m.exec(caddyfile)?.[1]?.split(" ") ?? [];

  const pulls = /^\t@pull path (.+)$/m.exec(caddyfile)?.[1]?.split(" ") ?? [];

  test.each(pulls)("%s to webhooks, as Caddy does", (path) => {
    expect(serviceOf(path)).toBe("booking-events-webhooks");
  });

  test.each(questions)("%s to lookup, as Caddy does", (pattern) => {
    expect(serviceOf(pattern.replace("*", "secret/acme"))).toBe("booking-events-lookup");
  });

  test.each([
    ["/booking-event/create/secret", "ingest"],
    ["/booking-event/update/secret", "ingest"],
    ["/booking-event/delete/secret", "ingest"],
    ["/booking-event/batch/secret", "ingest"],
    ["/booking-event/batch", "ingest"],
    ["/docs", "ingest"],
    ["/", "ingest"],
    ["/no/such/path", "ingest"],
    ["/changes/other", "ingest"],
  ])("%s to %s", (path, component) => {
    expect(serviceOf(path)).toBe(`booking-events-${component}`);
  });

  test("requests to ports of services that exist", () => {
    const services = rendered.example.filter(({ kind }) => kind === "Service");
    for (const { name, port } of rules.flatMap(({ backendRefs }) => backendRefs)) {
      const service = services.find(({ metadata }) => metadata.name === name);
      expect(service?.["spec"].ports).toContainEqual({ name: "http", port, targetPort: "http" });
    }
  });
});

test("nothing of the gateway logs what a client wrote, and so a secret", () => {
  const { parametersRef } = gateway["spec"].infrastructure;
  const proxy = find("EnvoyProxy");
  expect(parametersRef).toMatchObject({ kind: proxy.kind, name: proxy.metadata.name });
  const { accessLog, tracing } = proxy["spec"].telemetry;
  // It would trace paths.
  expect(tracing).toBeUndefined();
  expect(proxy["spec"]).not.toHaveProperty("logging");
  const formats = accessLog.settings.map(({ format }: { format: { json: Record<string, string> } }) => format.json);
  expect(formats).toHaveLength(1);
  const harmless =
    /^%(START_TIME|REQ\(:METHOD\)|REQ\(X-REQUEST-ID\)|ROUTE_NAME|RESPONSE_CODE|RESPONSE_FLAGS|RESPONSE_CODE_DETAILS|DURATION|BYTES_RECEIVED|BYTES_SENT|DOWNSTREAM_REMOTE_ADDRESS|UPSTREAM_HOST)%$/;
  for (const value of Object.values(formats[0])) expect(value).toMatch(harmless);
  // Envoy makes the id, unless it is told to keep the client's.
  expect(client.headers).not.toHaveProperty("requestID");
});

test("no request is sent to another pod once anything of it was sent to one", () => {
  expect(backend.retry.retryOn).toEqual({ triggers: ["connect-failure"] });
  for (const rule of rules) expect(rule).not.toHaveProperty("retry");
  const removed: string[] = client.headers.earlyRequestHeaders.remove;
  expect(removed).toEqual(expect.arrayContaining(["x-envoy-retry-on", "x-envoy-max-retries"]));
});

test("both policies are of this gateway, and so is the route", () => {
  const { name } = gateway.metadata;
  for (const { targetRefs } of [client, backend]) expect(targetRefs).toMatchObject([{ kind: gateway.kind, name }]);
  expect(parentRefs).toEqual([{ name }]);
});

test("only TLS is answered, with the certificate of the public name", () => {
  const [listener, ...others] = gateway["spec"].listeners;
  expect(others).toEqual([]);
  expect(listener).toMatchObject({ protocol: "HTTPS", port: 443, hostname: "events.example.com" });
  expect(listener.tls).toEqual({ certificateRefs: [{ name: "booking-events-tls" }] });
});

test("paths and headers arrive as they were sent", () => {
  expect(client.path).toEqual({ escapedSlashesAction: "KeepUnchanged", disableMergeSlashes: true });
  expect(client.headers.withUnderscoresAction).toBe("Allow");
});

describe("the gateway waits", () => {
  const timeout = (path: string) => secondsOf(ruleOf(path)?.timeouts.request ?? "");

  test("as long as an answer takes", () => {
    expect(timeout("/booking-event/create/secret")).toBeGreaterThanOrEqual(15);
    expect(timeout("/booking-event/batch/secret")).toBe(3_600);
    expect(timeout("/booking-event/reconcile/secret")).toBeGreaterThanOrEqual(300);
    // `wait` is up to 30 s.
    expect(timeout("/changes")).toBeGreaterThan(30);
    // Forever.
    expect(timeout("/changes/snapshot")).toBe(0);
  });

  test("as long as a list of bookings takes to arrive, as Caddy does", () => {
    const caddy = /^\s*read_body (\d+)s$/m.exec(readFileSync("deploy/Caddyfile", "utf8"))?.[1];
    expect(secondsOf(client.timeout.http.requestReceivedTimeout)).toBe(Number(caddy));
  });

  test("for a client that does not read its answer as long as for the slowest answer", () => {
    // Neither side of a batch is ever silent for more than a minute.
    const others = rules.filter(({ matches }) => matches[0]?.path.value !== "/booking-event/batch");
    const longest = Math.max(...others.map(({ timeouts }) => secondsOf(timeouts.request)));
    expect(secondsOf(client.timeout.http.streamIdleTimeout)).toBe(longest);
  });

  test("and closes idle connections before the processes do", () => {
    const { KEEP_ALIVE_TIMEOUT_MS } = parseEnvironment({ KEEP_ALIVE_TIMEOUT_MS: variables.KEEP_ALIVE_TIMEOUT_MS }, {});
    expect(secondsOf(backend.timeout.http.connectionIdleTimeout) * 1_000).toBeLessThan(KEEP_ALIVE_TIMEOUT_MS);
  });
});

test("the gateway limits no body, because the processes do and answer as the guides say", () => {
  expect(backend).not.toHaveProperty("requestBuffer");
  expect(client.connection).toEqual({ connectionLimit: { value: expect.any(Number) } });
});

test("ingest and lookup count the gateway as the one proxy in front of them", () => {
  for (const component of ["ingest", "lookup"]) {
    const { containers } = podSpecOf(findNamed("Deployment", component));
    expect(containers[0].env).toContainEqual({ name: "TRUSTED_PROXY_HOPS", value: "1" });
  }
  expect(client).not.toHaveProperty("clientIPDetection");
  expect(find("EnvoyProxy")["spec"].provider.kubernetes.envoyService.externalTrafficPolicy).toBe("Local");
});
