import { readFile } from "node:fs/promises";
import { variables } from "@booking-events/runtime";
import { beforeAll, expect, test } from "vitest";
import { parse } from "yaml";

interface Service {
  environment?: Record<string, string>;
  profiles?: string[];
  ports?: string[];
  networks?: string[];
  read_only?: boolean;
  cap_drop?: string[];
  security_opt?: string[];
  command?: string;
  mem_limit?: string;
  logging?: { driver: string; options: Record<string, string> };
}

let services: Record<string, Service>;
let caddyfile: string;

beforeAll(async () => {
  ({ services } = parse(await readFile("docker-compose.yml", "utf8"), { merge: true }));
  caddyfile = await readFile("deploy/Caddyfile", "utf8");
});

test("Caddy is in front of each ingest of its profile, and gets each variable that its file reads", () => {
  const environment = services["caddy"]?.environment ?? {};
  const ingests = Object.keys(services).filter((name) => name.startsWith("ingest"));
  expect(ingests.length).toBeGreaterThan(1);
  expect(environment["INGEST_UPSTREAMS"]?.split(" ")).toEqual(ingests.map((name) => `${name}:8080`));
  const read = [...caddyfile.matchAll(/\{\$(\w+)\}/g)].map(([, name]) => name);
  expect(Object.keys(environment).toSorted()).toEqual([...new Set(read)].toSorted());
  for (const name of ingests) expect(services[name]?.environment).toHaveProperty("TRUSTED_PROXY_HOPS");
});

test("the admin ports are open only to Caddy, which asks each ingest whether it is ready", () => {
  for (const [name, { environment }] of Object.entries(services)) {
    expect(environment?.["ADMIN_HOST"], name).toBe(name.startsWith("ingest") ? "0.0.0.0" : undefined);
  }
});

test("every variable of an app is one that the apps know", () => {
  for (const name of ["ingest", "ingest-2", "worker", "ops"]) {
    for (const variable of Object.keys(services[name]?.environment ?? {})) {
      // Node's own.
      if (variable !== "NODE_OPTIONS") expect(variables).toHaveProperty(variable);
    }
  }
});

test("from outside, only Caddy can be reached, and only the worker and the operator reach PostgreSQL", () => {
  const published = Object.entries(services).flatMap(([name, { ports = [] }]) => ports.map((port) => [name, port]));
  expect(published.filter(([, port]) => !port?.startsWith("127.0.0.1:")).map(([name]) => name)).toEqual(
    Array(3).fill("caddy"),
  );
  const beside = (network: string) =>
    Object.keys(services).filter((name) => services[name]?.networks?.includes(network));
  expect(beside("database")).toEqual(["worker", "ops", "postgres"]);
  expect(beside("queue")).toEqual(["ingest", "ingest-2", "worker", "ops", "redis"]);
});

test("no program can gain privileges; ours have none and can't write files", () => {
  for (const [name, service] of Object.entries(services)) {
    expect(service.security_opt, name).toContain("no-new-privileges:true");
    if (name === "redis" || name === "postgres") continue;
    expect(service, name).toMatchObject({ read_only: true, cap_drop: ["ALL"] });
  }
});

test("no container's log or memory grows without a limit", () => {
  for (const [name, service] of Object.entries(services)) {
    expect(service.logging, name).toEqual({ driver: "json-file", options: { "max-size": "10m", "max-file": "5" } });
    expect(service.mem_limit, name).toMatch(/^\d+[mg]$/);
  }
});

test("each program uses less memory than its container has, so the kernel does not kill it", () => {
  for (const name of ["ingest", "ingest-2", "worker"]) {
    const { environment, mem_limit } = services[name] ?? {};
    const heapMegabytes = Number(/^--max-old-space-size=(\d+)$/.exec(environment?.["NODE_OPTIONS"] ?? "")?.[1]);
    // Besides the heap of old objects, Node needs memory for new objects, code and buffers.
    expect(heapMegabytes, name).toBeLessThanOrEqual(0.7 * megabytes(mem_limit));
    expect(heapMegabytes, name).toBeGreaterThanOrEqual(0.5 * megabytes(mem_limit));
  }
  const { command, mem_limit } = services["redis"] ?? {};
  const maxmemory = megabytes(/--maxmemory (\w+)/.exec(command ?? "")?.[1]);
  // While it rewrites its append-only file, it keeps a copy of what changes.
  expect(megabytes(mem_limit)).toBeGreaterThanOrEqual(2 * maxmemory);
});

/** Of a size such as 512m or 1gb; NaN if it is none. */
function megabytes(size = ""): number {
  const [, amount, unit] = /^(\d+)(m|g)b?$/.exec(size) ?? [];
  return Number(amount) * (unit === "g" ? 1_024 : 1);
}
