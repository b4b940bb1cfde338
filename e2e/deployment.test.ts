import { readFile } from "node:fs/promises";
import { variables } from "@booking-events/service";
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

test("every variable of an app is one that the apps know", () => {
  for (const name of ["ingest", "ingest-2", "worker", "ops"]) {
    for (const variable of Object.keys(services[name]?.environment ?? {})) expect(variables).toHaveProperty(variable);
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

test("no program can gain privileges, and ours have none and write nowhere", () => {
  for (const [name, service] of Object.entries(services)) {
    expect(service.security_opt, name).toContain("no-new-privileges:true");
    if (name === "redis" || name === "postgres") continue;
    expect(service, name).toMatchObject({ read_only: true, cap_drop: ["ALL"] });
  }
});
