import assert from "node:assert/strict";
import { access } from "node:fs/promises";
import { parseEnvironment, redisVariables, toRedisServers, variables } from "@booking-events/runtime";
import type { Deployment } from "./deployment.ts";
import type { Step } from "./step.ts";

/** What `docker compose config --format json` says of a service. */
interface Service {
  image: string;
  build?: object;
  command: string[] | null;
  entrypoint: string[] | null;
  restart?: string;
  stop_grace_period?: string;
  environment?: Record<string, string>;
  ports?: { host_ip?: string; published: string }[];
  networks?: Record<string, { ipv4_address?: string } | null>;
  volumes?: { type: string; source: string; target: string }[];
  read_only?: boolean;
  cap_drop?: string[];
  security_opt?: string[];
  mem_limit?: string;
  logging?: { driver: string; options: Record<string, string> };
  depends_on?: Record<string, { condition: string }>;
}

interface Model {
  services: Record<string, Service>;
  networks: Record<string, { internal?: boolean }>;
}

const alone = "docker-compose.yml";
const files = [alone, `${alone}:deploy/ha/compose.yml`];
const profiles = ["", "tls", "observability", "backup", "console", "ops", "*"];
/** Each runs one command. */
const ends = new Set(["ops", "migrate", "folders", "tls-needs-site-address"]);
const usersOfRedis = /^(ingest|worker|lookup|console|ops|migrate)/;

/** Lets the real Compose read and merge the files, and checks what must hold for whatever comes out. Needs no engine. */
export async function checkFiles(deployment: Deployment, step: Step): Promise<void> {
  const models: Model[] = [];
  for (const file of files) {
    await step(`config ${file}`, async () => {
      for (const profile of profiles) models.push(await readModel(deployment, file, profile));
    });
  }
  await step("each service is hardened, limited and restarted", async () => {
    for (const { services } of models)
      for (const [name, service] of Object.entries(services)) checkService(name, service);
  });
  await step("each process gets variables that it knows, and volumes that exist", async () => {
    for (const { services } of models)
      for (const [name, service] of Object.entries(services)) await checkInputs(name, service);
  });
  await step("each password is known only to those who need it", async () => {
    const passwords = await deployment.passwords();
    for (const { services } of models) checkPasswords(services, passwords);
  });
  await step("the standbys are as the single servers, and each process knows all of them", async () => {
    const [one, several] = [models[profiles.length - 1], models.at(-1)];
    assert(one && several);
    checkRedis(one, several);
    checkPostgres(one, several);
  });
}

async function readModel(deployment: Deployment, file: string, profile: string): Promise<Model> {
  await deployment.set({ COMPOSE_FILE: file, SITE_ADDRESS: "events.example.com" });
  return JSON.parse(await deployment.compose(`--profile=${profile}`, "config", "--format", "json"));
}

function checkService(name: string, service: Service): void {
  const { security_opt, read_only, cap_drop, mem_limit, logging, restart, stop_grace_period, image } = service;
  assert.deepEqual(security_opt, ["no-new-privileges:true"], name);
  // The images of the data stores change their user, and write.
  if (!/^(redis|postgres)(-\d)?$/.test(name)) assert.deepEqual([read_only, cap_drop], [true, ["ALL"]], name);
  assert(Number(mem_limit) > 0, `${name} has a limit of memory`);
  assert.deepEqual(logging, { driver: "json-file", options: { "max-size": "10m", "max-file": "5" } }, name);
  // PostgreSQL's versions have two parts.
  if (service.build === undefined) assert.match(image, /:v?\d+\.\d+\.\d+(-alpine)?$|:v?\d+\.\d+-alpine$/, name);
  if (ends.has(name)) return;
  assert.equal(restart, "unless-stopped", name);
  const { SHUTDOWN_TIMEOUT_MS } = parseEnvironment({ SHUTDOWN_TIMEOUT_MS: variables.SHUTDOWN_TIMEOUT_MS }, {});
  const longestMs = Number(service.environment?.["SHUTDOWN_DELAY_MS"] ?? 0) + SHUTDOWN_TIMEOUT_MS;
  assert(toSeconds(stop_grace_period) >= longestMs / 1_000 + 3, `${name} has the time to stop`);
}

/** Of a duration such as 1m0s. */
function toSeconds(duration = ""): number {
  const [, minutes = 0, seconds = 0] = /^(?:(\d+)m)?(?:(\d+)s)?$/.exec(duration) ?? [];
  return 60 * Number(minutes) + Number(seconds);
}

async function checkInputs(name: string, { environment = {}, volumes = [] }: Service): Promise<void> {
  for (const { type, source } of volumes) if (type === "bind" && source.includes("/deploy/")) await access(source);
  if (!usersOfRedis.test(name) && name !== "webhooks") return;
  // Node's own.
  for (const variable of Object.keys(environment))
    if (variable !== "NODE_OPTIONS") assert(Object.hasOwn(variables, variable), `${name} has ${variable}`);
  if (usersOfRedis.test(name)) toRedisServers(parseEnvironment(redisVariables, environment));
  if (!name.startsWith("ingest")) parseEnvironment({ DATABASE_URL: variables.DATABASE_URL }, environment);
}

/** PostgreSQL's image, dumps and migrations need the owner's. The migration gives the roles theirs. */
const owners = ["postgres", "postgres-2", "backup", "migrate"];

function checkPasswords(services: Record<string, Service>, passwords: Map<string, string>): void {
  assert(passwords.size >= 5);
  for (const [variable, password] of passwords) {
    const holders = Object.keys(services).filter((name) =>
      Object.values(services[name]?.environment ?? {}).some((value) => value?.includes(password)),
    );
    const user = variable.replace(/_(DATABASE_)?PASSWORD$/, "").toLowerCase();
    const mayHold = user === "postgres" ? owners : [user, `postgres-${user}`, "migrate"];
    assert.deepEqual(
      holders.filter((name) => !mayHold.includes(name)),
      [],
      variable,
    );
  }
}

function ofKind({ services }: Model, kind: RegExp): [string, Service][] {
  return Object.entries(services).filter(([name]) => kind.test(name));
}

/** Names would have to be looked up, and in an internal network that of a lost server takes seconds. */
function checkRedis(one: Model, several: Model): void {
  const single = one.services["redis"];
  const settings = single?.command?.filter((argument) => argument !== "redis-server") ?? [];
  const servers = ofKind(several, /^redis(-\d)?$/);
  assert.equal(servers.length, 3);
  for (const [name, { command, environment, image, mem_limit, networks, volumes }] of servers) {
    assert.deepEqual(command?.slice(0, settings.length), settings, name);
    assert.deepEqual(command?.slice(settings.length), ["--min-replicas-to-write", "1"], name);
    assert.deepEqual([image, mem_limit], [single?.image, single?.mem_limit], name);
    assert.equal(environment?.["ADDRESS"], networks?.["queue"]?.ipv4_address, name);
    assert.deepEqual(
      volumes?.map(({ source }) => source),
      [`${name}-data`],
    );
  }
  const sentinels = ofKind(several, /^sentinel-/);
  const addresses = sentinels.map(([, { networks }]) => networks?.["queue"]?.ipv4_address);
  for (const [name, { environment, entrypoint }] of sentinels) {
    assert(addresses.includes(environment?.["ADDRESS"]), name);
    const [, quorum] = /sentinel monitor booking-events \S+ 6379 (\d)/.exec(entrypoint?.join(" ") ?? "") ?? [];
    assert.equal(Number(quorum), Math.floor(sentinels.length / 2) + 1, name);
  }
  for (const [name, { environment }] of [...servers, ...sentinels])
    assert.equal(environment?.["FIRST_PRIMARY"], several.services["redis"]?.environment?.["ADDRESS"], name);
  for (const [name, { environment }] of ofKind(several, usersOfRedis)) {
    assert.equal(environment?.["REDIS_SENTINELS"], addresses.map((address) => `${address}:26379`).join(), name);
    // 200 means that a replica has the event too.
    const confirms = /^(ingest|console|ops|migrate)/.test(name) ? "1" : undefined;
    assert.equal(environment?.["REDIS_REPLICAS_TO_CONFIRM"], confirms, name);
  }
}

function checkPostgres(one: Model, several: Model): void {
  const single = one.services["postgres"];
  const servers = ofKind(several, /^postgres(-\d)?$/);
  const names = servers.map(([name]) => name);
  assert.equal(names.length, 2);
  for (const [name, { command, environment, image, mem_limit }] of servers) {
    assert.deepEqual([command, image, mem_limit], [single?.command, single?.image, single?.mem_limit], name);
    assert.equal(environment?.["NAME"], name);
    assert.equal(environment?.["SYNCHRONOUS_STANDBY_NAMES"], names.map((other) => `"${other}"`).join());
  }
  for (const [name, { environment }] of ofKind(several, /^(worker|lookup|webhooks|console|ops|migrate)/)) {
    assert(environment?.["DATABASE_URL"]?.includes(names.map((server) => `${server}:5432`).join()), name);
    const confirms = ["lookup", "webhooks", "console"].includes(name) ? undefined : "1";
    assert.equal(environment?.["DATABASE_STANDBYS_TO_CONFIRM"], confirms, name);
  }
}
