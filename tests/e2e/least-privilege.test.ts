import { type ChildProcess, fork } from "node:child_process";
import { createHash, randomUUID, X509Certificate } from "node:crypto";
import { once } from "node:events";
import { chown, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type BookingChange, type FollowOptions, ForeignReaderError, follow } from "@booking-events/feed";
import { freePort, waitFor } from "@booking-events/harness";
import { compileCache } from "@booking-events/harness/app-process";
import { execute } from "@booking-events/harness/execute";
import { createCertificate } from "@booking-events/scripts/certificates";
import { appendChanges, createPool, inTransaction } from "@booking-events/store";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { postAccepted, postEvent } from "./post-event.ts";
import { type Ran, runOps } from "./run-ops.ts";
import { type RunningApp, runApp, useOwnServices } from "./surroundings.ts";
import { walkConsole } from "./walk-console.ts";

const secret = "a-secret-of-the-privilege-tests-01234567";
/** In a URL, almost every character of it would have to be encoded. */
const password = "least/privilege#password?50%25 [@:";
const processes = ["ingest", "worker", "lookup", "ops", "console"] as const;
type Process = (typeof processes)[number];

const own = useOwnServices(secret);
let redisTlsPort: number;
let redisAdmin: Redis;
let owner: ReturnType<typeof createPool>;
let certificateFile: string;
/** Runs the commands of an operator who trusts the certificate. Node reads it only when a process starts. */
let operator: ChildProcess;

beforeAll(async () => {
  redisTlsPort = await freePort();
  redisAdmin = new Redis(own.redis.url);
  certificateFile = await switchTlsOn();
  operator = fork("tests/e2e/operator.ts", {
    execArgv: ["--disable-warning=ExperimentalWarning", "--conditions=@booking-events/source"],
    env: { ...compileCache, NODE_EXTRA_CA_CERTS: certificateFile },
  });
  await createRedisUsers();
  await createPostgresRoles();
  owner = openPool("booking_events_owner");
  await redisAdmin.call("ACL", "LOG", "RESET");
});

afterAll(async () => {
  operator?.kill();
  redisAdmin?.disconnect();
  await owner?.end();
});

/** On both servers, with one self-signed certificate. Returns its file. */
async function switchTlsOn(): Promise<string> {
  const { certificate, key } = await createCertificate();
  const [certificateFile, keyFile] = [join(own.postgres.home, "server.crt"), join(own.postgres.home, "server.key")];
  await writeFile(certificateFile, certificate);
  await writeFile(keyFile, key, { mode: 0o600 });
  // PostgreSQL reads its key only if nobody else can.
  const { uid, gid } = await stat(join(own.postgres.home, "data"));
  await chown(keyFile, uid, gid);
  await asAdministrator([
    `alter system set ssl_cert_file = '${certificateFile}'`,
    `alter system set ssl_key_file = '${keyFile}'`,
    "alter system set ssl = on",
    "select pg_reload_conf()",
  ]);
  const redisKeyFile = join(own.folder, "redis.key");
  await writeFile(redisKeyFile, key, { mode: 0o600 });
  const settings = { "tls-cert-file": certificateFile, "tls-key-file": redisKeyFile, "tls-auth-clients": "no" };
  await redisAdmin.config("SET", ...Object.entries(settings).flat());
  await redisAdmin.config("SET", "tls-port", String(redisTlsPort));
  return certificateFile;
}

/** Those of `deploy/redis-users.conf`. The default user keeps the password that Redis was started with. */
async function createRedisUsers(): Promise<void> {
  const text = await readFile("deploy/redis-users.conf", "utf8");
  const digest = createHash("sha256").update(password).digest("hex");
  for (const line of text.replaceAll(/#SHA256-OF-\w+-PASSWORD/g, `#${digest}`).split("\n")) {
    const [keyword, user, ...rules] = line.split(" ");
    if (keyword === "user" && user !== "default") await redisAdmin.call("ACL", "SETUSER", user as string, ...rules);
  }
}

/** As an administrator whose owner of the tables may not create roles: by what the command says that is missing. */
async function createPostgresRoles(): Promise<void> {
  const run = (statements: string[]) => asAdministrator(statements.map((text) => text.replace("…", password)));
  await run([
    "drop database booking_events",
    "create role booking_events_owner login password '…'",
    "create database booking_events owner booking_events_owner",
  ]);
  const asOwner = { DATABASE_URL: databaseUrl("booking_events_owner") };
  const refused = await ops(["migrate", "--grant"], asOwner);
  expect(refused).toMatchObject({ exitCode: 1, stdout: "" });
  const statements = [...refused.stderr.matchAll(/create role \w+ login password '…'/g)].map(
    ([statement]) => statement,
  );
  expect(statements).toHaveLength(6);
  await run(statements);
  expect(await ops(["migrate", "--grant"], asOwner)).toMatchObject({ exitCode: 0, stderr: "" });
}

async function asAdministrator(statements: string[]): Promise<void> {
  const url = new URL(own.postgres.url);
  url.pathname = "/postgres";
  for (const statement of statements) await execute(url.href, statement);
}

function databaseUrl(role: string, parameters: Record<string, string> = {}): string {
  const query = new URLSearchParams({ sslmode: "verify-full", ...parameters });
  return `postgres://${role}@localhost:${own.postgres.port}/booking_events?${query}`;
}

function redisUrlOf(name: Process): string {
  return `rediss://booking-events-${name}@localhost:${redisTlsPort}`;
}

/** For clients that do not read the password's own variable. */
function withPassword(url: string): string {
  return Object.assign(new URL(url), { password: encodeURIComponent(password) }).href;
}

/** For this process, which was not started with the certificate. */
function openPool(role: string): ReturnType<typeof createPool> {
  return createPool({
    databaseUrl: withPassword(databaseUrl(role, { sslrootcert: certificateFile })),
    applicationName: "test",
    maxConnections: 2,
    onError: () => {},
  });
}

function environmentOf(name: Process): Record<string, string> {
  return {
    REDIS_URL: redisUrlOf(name),
    REDIS_PASSWORD: password,
    DATABASE_URL: databaseUrl(`booking_events_${name}`),
    DATABASE_PASSWORD: password,
    PARTNERS_FILE: join(own.folder, "partners.json"),
    NODE_EXTRA_CA_CERTS: certificateFile,
  };
}

async function ops(args: string[], environment: Record<string, string> = {}): Promise<Ran> {
  const answered = once(operator, "message");
  operator.send({ args, environment: { ...environmentOf("ops"), ...environment } });
  const [ran] = await answered;
  return ran;
}

function post(ingest: RunningApp, kind: string, reference: string): Promise<string> {
  const headers = { "Idempotency-Key": `${kind}-${reference}` };
  return postAccepted(ingest, { secret, kind, reference, headers });
}

async function outcomeOf(eventId: string): Promise<string | undefined> {
  const { rows } = await owner.query<{ outcome: string }>("select outcome from booking_events where id = $1", [
    eventId,
  ]);
  return rows[0]?.outcome;
}

async function leaveDeadLetter(ingest: RunningApp): Promise<void> {
  await owner.query(
    "alter table bookings add constraint mistake check (reference <> 'DEAD' or 1 / (0 * length(reference)) = 0)",
  );
  await post(ingest, "create", "DEAD");
  await waitFor(async () => {
    const { rows } = await owner.query("select error_code from dead_letters where resolved_at is null");
    expect(rows).toEqual([{ error_code: "22012" }]);
  });
  await owner.query("alter table bookings drop constraint mistake");
}

describe("over TLS and with the least privileges,", () => {
  let ingest: RunningApp;
  let worker: RunningApp;
  let lookup: RunningApp;
  beforeAll(async () => {
    const run = (name: "ingest" | "worker" | "lookup") => runApp(name, environmentOf(name));
    [ingest, worker, lookup] = await Promise.all([run("ingest"), run("worker"), run("lookup")]);
    await Promise.all([ingest, worker, lookup].map((app) => app.untilReady()));
  });
  afterAll(() => Promise.all([ingest, worker, lookup].map((app) => app?.stop("SIGKILL"))));

  test("events go their whole way, dead letters too", async () => {
    await owner.query(
      "alter table bookings add constraint mistake check (reference not like 'POISON%' or 1 / (0 * length(reference)) = 0)",
    );
    const created = await post(ingest, "create", "TRIP-1");
    await waitFor(async () => expect(await outcomeOf(created)).toBe("created"));
    const deleted = await post(ingest, "delete", "TRIP-1");
    await waitFor(async () => expect(await outcomeOf(deleted)).toBe("deleted"));

    const poisons = [await post(ingest, "create", "POISON-1"), await post(ingest, "create", "POISON-2")] as const;
    await waitFor(async () => {
      const { rows } = await owner.query("select error_code from dead_letters");
      expect(rows).toEqual([{ error_code: "22012" }, { error_code: "22012" }]);
    });
    const receipt = async (eventId: string) =>
      (await fetch(`${lookup.url}/booking-event/receipt/${secret}/${eventId}`)).json();
    expect(await receipt(created)).toMatchObject({ status: "applied", outcome: "created", decidedBy: deleted });
    const booking = await fetch(`${lookup.url}/booking-event/booking/${secret}?reference=TRIP-1&fields=all`);
    expect(await booking.json()).toMatchObject({ state: "deleted", decidedBy: deleted });
    const list = await fetch(`${lookup.url}/booking-event/reconcile/${secret}`, {
      method: "POST",
      headers: { "Content-Type": "application/x-ndjson" },
      body: '{"reference":"TRIP-1"}\n{"reference":"TRIP-2"}\n',
    });
    expect(await list.text()).toContain('"missing":1');
    const activity = await fetch(`${lookup.url}/booking-event/activity/${secret}`);
    expect(await activity.json()).toMatchObject({ partner: "acme", failed: [{ code: "22012" }, { code: "22012" }] });
    expect(await receipt(poisons[0])).toMatchObject({ status: "failed", code: "22012" });
    await owner.query("alter table bookings drop constraint mistake");
    expect(await ops(["dead-letters", "replay", poisons[0], "--yes"])).toMatchObject({ exitCode: 0 });
    expect(await outcomeOf(poisons[0])).toBe("created");
    const discarded = await ops(["dead-letters", "discard", poisons[1], "--reason", "sent again", "--yes"]);
    expect(discarded).toMatchObject({ exitCode: 0 });
    for (const look of [
      ["bookings", "show", "acme", "TRIP-1"],
      ["bookings", "show", "acme", "TRIP-1", "--at", "0", "--diff"],
      ["bookings", "stuck"],
      ["bookings", "restore", "acme", "TRIP-1", "NEVER", "--at", "0", "--yes"],
      ["find", "TRIP-1", "--json"],
      ["arrivals"],
      ["events", "list"],
      ["dead-letters", "list", "--resolved"],
      ["partners", "list"],
      ["retention", "--dry-run", "--json"],
      ["feed", "list"],
      ["subscriptions", "add", "hook", "--url", "https://example.com/hook", "--signature", "ed25519"],
      ["subscriptions", "add", "pulls"],
      ["subscriptions", "list"],
      ["subscriptions", "show", "hook"],
      ["subscriptions", "pause", "hook"],
      ["subscriptions", "resume", "hook"],
      ["subscriptions", "rotate", "hook"],
      ["subscriptions", "set", "hook", "--payload", "full"],
      ["subscriptions", "dead-letters", "hook"],
      ["queue", "pause"],
      ["queue", "resume"],
      ["queue", "retry-now"],
      ["queue", "attach"],
      ["audit"],
    ]) {
      expect(await ops(look)).toMatchObject({ exitCode: 0, stderr: "" });
    }
    expect((await ops(["export", "bookings", "--csv", "--payload"])).exitCode).toBe(0);
    expect((await ops(["export", "events", "--ndjson"])).exitCode).toBe(0);
    await owner.query("insert into feed_readers (name, owner, last_id) values ('hook', 'booking_events_webhooks', 2)");
    await owner.query(
      `insert into feed_deliveries (reader, booking_id, change_id, died_at)
       select 'hook', booking_id, id, now() from booking_changes where id = 1`,
    );
    // It gets its first filter, so what it was given has to be remembered.
    const filtered = await ops(["subscriptions", "set", "hook", "--country", "ES"]);
    expect(filtered).toMatchObject({ exitCode: 0, stderr: "" });
    for (const act of [
      ["dead-letters", "hook", "--replay-all"],
      ["replay", "hook", "--since", "1h"],
      ["remove", "hook"],
      ["remove", "pulls"],
    ]) {
      expect(await ops(["subscriptions", ...act, "--yes"])).toMatchObject({ exitCode: 0 });
    }
    expect(await ops(["status"])).toMatchObject({ stdout: expect.stringContaining("Nothing needs attention.") });
    const states = await doctor();
    expect(states.get("The database is migrated")).toBe("ok");
    expect(states.get("Redis writes each event to disk")).toBe("ok");
    expect((await postEvent(ingest, { secret })).status).toBe(422);
    await waitFor(async () => {
      const { stdout } = await ops(["refusals", "--partner", "acme", "--json"]);
      expect(JSON.parse(stdout)).toMatchObject([{ status: 422, violations: [expect.stringMatching(/:missing$/)] }]);
    });
    const withoutCountry = { consumerPhone: "07911 123456" };
    const headers = { "X-Dry-Run": "true" };
    await postEvent(ingest, { secret, reference: "TRIP-1", fields: withoutCountry, headers });
    await waitFor(async () => {
      const { stdout } = await ops(["partners", "warnings", "acme", "--json"]);
      expect(JSON.parse(stdout)).toMatchObject([{ field: "consumerPhone", code: "unreadable-phone", count: 1 }]);
    });
    expect(await readAsReader()).toEqual([{ state: "deleted" }, { state: "active" }]);
    await followAs("booking_events_reader", { onChange: async ({ change }) => change === "deleted" });
    expect(await ops(["feed", "reset", "booking_events_reader", "--yes"])).toMatchObject({ exitCode: 0 });
    await waitFor(async () =>
      expect(await worker.metrics()).toMatch(
        /^booking_events_feed_reader_lag_changes{reader="booking_events_reader",\S* [1-9]/m,
      ),
    );
    const lines = join(own.folder, "bookings.ndjson");
    await writeFile(lines, '{"consumerTripPartnerExternalReference":"IMPORTED"}\n');
    const imported = await ops(["import", lines, "--partner", "acme", "--as-of", new Date().toISOString()]);
    expect(imported).toMatchObject({ exitCode: 0, stderr: "", stdout: expect.stringContaining("1 queued") });
    await waitFor(async () => {
      const { rows } = await owner.query("select state from bookings where reference = 'IMPORTED'");
      expect(rows).toEqual([{ state: "active" }]);
    });
    await owner.query("update bookings set state = 'deleted', deleted_at = now() where reference = 'IMPORTED'");
    await owner.query("update booking_events set outcome = 'unchanged' where reference = 'IMPORTED'");
    expect(await ops(["bookings", "repair", "--all", "--yes"])).toMatchObject({
      exitCode: 0,
      stdout: expect.stringContaining("1 events revised, change 2 in the feed: recreated"),
    });
    await owner.query("update bookings set agent_timezone = '?' where reference = 'IMPORTED'");
    expect(await ops(["bookings", "renormalise"])).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(/ bookings: 1 corrected\.$/m),
    });
    expect(await ops(["guests", "erase", "--reference", "TRIP-1", "--reason", "request", "--yes"])).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(/Erased 1 bookings with 2 events[\s\S]*Redis has rewritten/),
    });
    const late = await post(ingest, "create", "TRIP-1");
    await waitFor(async () => expect(await outcomeOf(late)).toBe("erased"));

    expect(await receipt(late)).toEqual({ eventId: late, status: "erased" });
  });

  test("the console shows each page, and does what each form is for", async () => {
    await leaveDeadLetter(ingest);
    await ops(["subscriptions", "add", "hook", "--url", "https://example.com/hook", "--signature", "ed25519"]);
    // Something was posted, and a change took its booking out of the filter.
    await owner.query("insert into feed_readers (name, owner, last_id) values ('hook', 'booking_events_webhooks', 2)");
    await owner.query(
      "insert into feed_handed (reader, booking_id, is_inside) select 'hook', booking_id, false from booking_changes limit 1",
    );
    onTestFinished(async () => void (await owner.query("delete from feed_readers where name = 'hook'")));
    const { url, stop, untilReady } = await runApp("console", {
      ...environmentOf("console"),
      CONSOLE_PASSWORD: secret,
    });
    onTestFinished(async () => void (await stop("SIGKILL")));
    await untilReady();
    const headers = { "Sec-Fetch-Site": "same-origin" };
    const body = new URLSearchParams({ name: "tester", password: secret });
    const login = await fetch(`${url}/login`, { method: "POST", headers, body, redirect: "manual" });
    const cookie = login.headers.getSetCookie()[0]?.split(";")[0] ?? "";
    expect(await ops(["queue", "pause"])).toMatchObject({ exitCode: 0 });
    const waiting = await post(ingest, "create", "WAITS");
    expect(await ops(["find", waiting])).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(/waiting/i),
      stderr: expect.not.stringContaining("Not looked at"),
    });
    const page = await fetch(`${url}/events/${waiting}`, { headers: { cookie } });
    expect([page.status, await page.text()]).toEqual([200, expect.stringMatching(/waiting/i)]);
    expect(await ops(["queue", "resume"])).toMatchObject({ exitCode: 0 });
    const { pages, forms } = await walkConsole(url, cookie);
    expect(pages.length).toBeGreaterThan(0);
    for (const { path, status, html } of [...pages, ...forms]) {
      expect([path, status < 400, /42501|permission denied|NOPERM/.exec(html)]).toEqual([path, true, null]);
    }
    // "Post again" has worked.
    expect((await owner.query("select from feed_handed where not is_inside")).rowCount).toBe(0);
    expect(await stop("SIGTERM")).toBe(0);
  });

  test("each process exports the state of the queue, and until when the certificates that it meets are valid", async () => {
    const end = Date.parse(new X509Certificate(await readFile(certificateFile)).validTo) / 1_000;
    await waitFor(async () => {
      for (const metrics of [await ingest.metrics(), await worker.metrics()]) {
        expect(metrics).toMatch(/^booking_events_redis_up\S* 1$/m);
        expect(metrics).toMatch(/^booking_events_redis_durable\S* 1$/m);
        expect(metrics).toMatch(/^booking_events_workers\S* 1$/m);
        expect(metrics).toMatch(new RegExp(`^booking_events_certificate_\\w+{server="redis",\\S* ${end}$`, "m"));
      }
      expect(await worker.metrics()).toMatch(
        new RegExp(`^booking_events_certificate_\\w+{server="postgresql",\\S* ${end}$`, "m"),
      );
    });
  });

  test("the processes stop cleanly, and Redis has refused them nothing", async () => {
    for (const app of [ingest, worker, lookup]) expect(await app.stop("SIGTERM")).toBe(0);
    expect(await refusedByRedis()).toEqual([]);
  });
});

test("the grants are for the schema of DATABASE_SCHEMA", async () => {
  const environment = { DATABASE_URL: databaseUrl("booking_events_owner"), DATABASE_SCHEMA: "second" };
  expect(await ops(["migrate"], environment)).toMatchObject({ exitCode: 0 });
  const inSecond = { DATABASE_URL: databaseUrl("booking_events_ops"), DATABASE_SCHEMA: "second" };
  expect(await ops(["events", "list"], inSecond)).toMatchObject({ exitCode: 1 });
  expect(await ops(["migrate", "--grant"], environment)).toMatchObject({ exitCode: 0 });
  expect(await ops(["events", "list"], inSecond)).toMatchObject({ exitCode: 0 });
  // For the bookings of test partners, too, which nobody follows. Only those the worker may remove.
  expect(await ops(["--test-partners", "events", "list"], inSecond)).toMatchObject({ exitCode: 0 });
  const { rows } = await owner.query(
    `select
       (select json_agg(name order by name) from unnest(array['worker', 'lookup', 'ops', 'console', 'reader', 'webhooks'])
         as name where has_schema_privilege('booking_events_' || name, 'second_test_partners', 'usage')) as users,
       has_function_privilege('booking_events_worker', 'second_test_partners.delete_test_data(timestamptz, integer)',
         'execute') as removes,
       has_function_privilege('booking_events_worker', 'second.delete_test_data(timestamptz, integer)',
         'execute') as "removesReal"`,
  );
  expect(rows).toEqual([{ users: ["console", "lookup", "ops", "worker"], removes: true, removesReal: false }]);
});

test("a worker that finds a migration missing says so and waits for the owner to migrate", async () => {
  const { rows } = await owner.query(
    "delete from schema_migrations where name = (select max(name) from schema_migrations) returning name, digest",
  );
  const worker = await own.start("worker", { environment: environmentOf("worker"), isReady: false });
  await waitFor(async () =>
    expect((await worker.readiness()).body.problems?.join()).toMatch(
      /42501.*Run as the owner of the tables: ops migrate --grant/,
    ),
  );
  await waitFor(() => expect(worker.output()).toContain("are not of this release, or are not granted"));
  const { name, digest } = rows[0];
  await owner.query("insert into schema_migrations (name, digest, allows_older) values ($1, $2, false)", [
    name,
    digest,
  ]);
  await worker.untilReady();
}, 60_000);

/** Returns the state of each check by its name. */
async function doctor(): Promise<Map<string, string>> {
  const checks = JSON.parse((await ops(["doctor", "--json"])).stdout) as { name: string; state: string }[];
  return new Map(checks.map(({ name, state }) => [name, state]));
}

async function readAsReader(): Promise<unknown[]> {
  const reader = openPool("booking_events_reader");
  const { rows } = await reader.query(
    `select state from booking_changes join booking_details using (partner, reference)
     where change <> 'deleted' order by booking_changes.id`,
  );
  await reader.end();
  return rows;
}

/** Follows under the role's name, or another one, until a handler returns true. */
async function followAs(
  role: string,
  {
    name = role,
    onChange,
    ...more
  }: { onChange: (change: BookingChange) => Promise<boolean> } & Partial<Omit<FollowOptions, "onChange">>,
): Promise<void> {
  const stopping = new AbortController();
  await follow({
    ...more,
    name,
    database: withPassword(databaseUrl(role, { sslrootcert: certificateFile })),
    signal: AbortSignal.any([stopping.signal, AbortSignal.timeout(10_000)]),
    onChange: async (change) => {
      if (await onChange(change)) stopping.abort();
    },
  });
  expect(stopping.signal.aborted).toBe(true);
}

test("a program that follows the feed as a role of its own can move no other's reader, and starts its own over", async () => {
  const roles = ["arrivals", "invoices"] as const;
  for (const role of roles)
    await asAdministrator([`create role ${role} login password '${password}' in role booking_events_reader`]);
  await appendToFeed();
  const toTheEnd = async ({ reference }: BookingChange) => reference === "FEED";
  for (const role of roles) await followAs(role, { onChange: toTheEnd });
  const places = async () => (await owner.query("select name, owner, last_id from feed_readers order by name")).rows;
  const before = await places();
  expect(before).toMatchObject([{ name: "arrivals", owner: "arrivals" }, {}, { name: "invoices", owner: "invoices" }]);

  await expect(followAs("invoices", { name: "arrivals", onChange: toTheEnd })).rejects.toThrow(ForeignReaderError);
  const invoices = openPool("invoices");
  await owner.query("insert into feed_deliveries (reader, booking_id, done_id) values ('arrivals', $1, 1e9)", [
    randomUUID(),
  ]);
  expect((await invoices.query("update feed_deliveries set done_id = null")).rowCount).toBe(0);
  await invoices.query("select remove_spent_deliveries('{arrivals}')");
  expect((await owner.query("select from feed_deliveries")).rowCount).toBe(1);
  expect((await invoices.query("update feed_readers set last_id = 0 where name = 'arrivals'")).rowCount).toBe(0);
  for (const statement of [
    "delete from feed_readers where name = 'arrivals'",
    // All other readers would wait.
    "do $$ begin lock table feed_readers; end $$",
    "do $$ begin lock table booking_changes in share mode; end $$",
    "do $$ begin perform from feed_position for update; end $$",
    "insert into feed_readers (name, last_id) values ('arrivals', 0) on conflict (name) do update set last_id = 0",
    "insert into feed_readers (name, owner) values ('another', 'arrivals')",
    "update feed_readers set owner = 'arrivals' where name = 'invoices'",
    "truncate feed_readers",
    "delete from feed_deliveries",
    "do $$ begin lock table feed_deliveries; end $$",
    "insert into feed_deliveries (reader, booking_id) values ('arrivals', gen_random_uuid())",
    "insert into feed_handed (reader, booking_id, is_inside) values ('arrivals', gen_random_uuid(), true)",
  ])
    await expect(invoices.query(statement)).rejects.toMatchObject({ code: "42501" });
  expect(await places()).toEqual(before);

  // As documented, by the role itself.
  const reset = "update feed_readers set last_id = null where name = 'invoices'";
  expect((await invoices.query(reset)).rowCount).toBe(1);
  await invoices.end();
  const startingOver = followAs("invoices", { from: "now", onChange: toTheEnd });
  await waitFor(async () => expect((await places()).at(-1)?.last_id).not.toBeNull());
  await appendToFeed();
  await startingOver;
});

function appendToFeed(): Promise<void> {
  const booking = { bookingId: randomUUID(), partner: "acme", referenceKind: "trip", reference: "FEED" } as const;
  const event = { eventId: randomUUID(), sequence: 1, previousEventId: null };
  return inTransaction(owner, (client) =>
    appendChanges(client, [{ ...booking, ...event, revision: 1, change: "created" }]),
  );
}

test("the worker maintains the tables though it does not own them, and ops leaves that to the owner", async () => {
  const { rows } = await owner.query(
    `select inhrelid::regclass::text as name from pg_inherits
     where inhparent = 'booking_events'::regclass order by 1 desc limit 2`,
  );
  const [, { name }] = rows;
  expect(name).toMatch(/^booking_events_\d{4}_\d\d$/);
  await owner.query(`drop table ${name}`);
  const worker = await own.start("worker", { environment: { ...environmentOf("worker"), RETENTION_DAYS: "300" } });
  await waitFor(async () => {
    const { rows } = await owner.query("select to_regclass($1) is not null as found", [name]);
    expect(rows).toEqual([{ found: true }]);
  });
  await waitFor(async () => {
    const metrics = await (await fetch(`${worker.adminUrl}/metrics`)).text();
    expect(metrics).toMatch(/^booking_events_maintenance_success_timestamp_seconds\S* [1-9]/m);
  });
  const { rows: rules } = await owner.query("select retention_days, duplicate_window_hours from log_retention");
  expect(rules).toEqual([{ retention_days: 300, duplicate_window_hours: 72 }]);
  expect(await worker.stop("SIGTERM")).toBe(0);
  const refused = await ops(["maintain"]);
  expect(refused).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("the owner's DATABASE_URL") });
  const owned = await ops(["maintain"], { DATABASE_URL: databaseUrl("booking_events_owner") });
  expect(owned).toMatchObject({ exitCode: 0, stdout: "Nothing to do.\n" });
}, 60_000);

describe("what a process does not need is refused", () => {
  const job = "{booking-events}:events:01a1fb0c-d72c-7345-a7ee-38bfa851309c";
  const redisOf = new Map<Process, Redis>();
  const poolOf = new Map<string, ReturnType<typeof openPool>>();

  beforeAll(async () => {
    const ca = await readFile(certificateFile);
    for (const name of processes) redisOf.set(name, new Redis(withPassword(redisUrlOf(name)), { tls: { ca } }));
    for (const name of ["worker", "lookup", "ops", "reader", "console"])
      poolOf.set(name, openPool(`booking_events_${name}`));
  });

  afterAll(async () => {
    for (const redis of redisOf.values()) redis.disconnect();
    for (const pool of poolOf.values()) await pool.end();
  });

  test.each<[Process, string[]]>([
    ...processes.flatMap((name): [Process, string[]][] => [
      [name, ["GET", "another:key"]],
      [name, ["KEYS", "*"]],
      [name, ["FLUSHALL"]],
      [name, ["CONFIG", "SET", "appendfsync", "no"]],
      [name, ["REPLICAOF", "127.0.0.1", "1"]],
      [name, ["CLIENT", "LIST"]],
      [name, ["MONITOR"]],
      [name, ["SCRIPT", "FLUSH"]],
      [name, ["PUBLISH", "channel", "text"]],
      [name, ["ACL", "LIST"]],
    ]),
    ["ingest", ["SCAN", "0"]],
    ["worker", ["SCAN", "0"]],
    ["ingest", ["HGETALL", job]],
    ["ingest", ["LRANGE", "{booking-events}:events:wait", "0", "-1"]],
    ["ingest", ["RPOP", "{booking-events}:events:wait"]],
    ["ingest", ["DEL", job]],
    ["lookup", ["HGETALL", job]],
    ["lookup", ["HSET", job, "data", "{}"]],
    ["lookup", ["DEL", job]],
    ["lookup", ["RPOP", "{booking-events}:events:wait"]],
    ["lookup", ["SET", "{booking-events-limits}:rate-limit:acme", "1"]],
    ["lookup", ["HGETALL", "{booking-events-records}:last-use"]],
    ["lookup", ["HGETALL", "{booking-events-7}:events:x"]],
    ["lookup", ["HSET", "{booking-events-records}:warnings:acme:2026-11-22", "field", "1"]],
    ["worker", ["HGETALL", "{booking-events-records}:last-use"]],
    ["ops", ["RPOP", "{booking-events}:events:wait"]],
    ["ops", ["SCRIPT", "LOAD", "return 1"]],
    ["ops", ["XADD", "{booking-events}:events:events", "*", "event", "waiting"]],
    ["ops", ["DEL", "another:key"]],
    ["ops", ["BGSAVE"]],
    ["console", ["RPOP", "{booking-events}:events:wait"]],
    ["console", ["LREM", "{booking-events}:events:wait", "0", "x"]],
    ["console", ["DEL", job]],
    ["console", ["BGREWRITEAOF"]],
    ["worker", ["CONFIG", "GET", "*"]],
  ])("by Redis: %s may not %j", async (name, [command = "", ...args]) => {
    await expect(redisOf.get(name)?.call(command, ...args)).rejects.toThrow(/^NOPERM/);
  });

  test.each([
    ["worker", "create table more (id int)"],
    ["worker", "alter table bookings add column more int"],
    ["worker", "drop table bookings"],
    ["worker", "truncate booking_events"],
    ["worker", "delete from bookings"],
    ["worker", "delete from booking_events"],
    ["worker", "update booking_events set payload = '{}'"],
    ["worker", "delete from booking_changes"],
    ["worker", "delete from feed_position"],
    ["worker", "update log_retention set horizon = now()"],
    ["worker", "drop table booking_events_default"],
    ["ops", "select drop_log_partition(1, now())"],
    ["reader", "select delete_old_changes(1, now(), 1)"],
    ["worker", "update schema_migrations set name = ''"],
    ["lookup", "select payload from booking_events"],
    ["lookup", "select reference from booking_events"],
    ["lookup", "select envelope from dead_letters"],
    ["lookup", "select guest_hashes from bookings"],
    ["lookup", "select default_country from bookings"],
    ["lookup", "update digest_key set key = null"],
    ["lookup", "update bookings set state = 'deleted'"],
    ["lookup", "delete from booking_events"],
    ["lookup", "create table more (id int)"],
    ["ops", "create table more (id int)"],
    ["ops", "delete from bookings"],
    ["ops", "update booking_events set sequence = 1"],
    ["ops", "update booking_changes set change = 'created'"],
    ["ops", "delete from erasures"],
    ["ops", "delete from operator_actions"],
    ["ops", "update operator_actions set operator = 'another'"],
    ["worker", "select * from operator_actions"],
    ["worker", "select * from erasures"],
    ["worker", "select signing_key from subscriptions"],
    ["lookup", "select name from subscriptions"],
    ["console", "delete from bookings"],
    ["console", "update bookings set state = 'deleted'"],
    ["console", "insert into bookings (partner) values ('acme')"],
    ["console", "update booking_events set payload = '{}'"],
    ["console", "update booking_changes set reference = null"],
    ["console", "update dead_letters set envelope = ''"],
    ["console", "update digest_key set key = null"],
    ["console", "insert into erasures (id) values (gen_random_uuid())"],
    ["console", "delete from operator_actions"],
    ["console", "update operator_actions set operator = 'another'"],
    ["console", "select signing_key from subscriptions"],
    ["console", "select token_sha256 from subscriptions"],
    ["console", "update subscriptions set url = 'https://example.com'"],
    ["console", "delete from subscriptions"],
    ["console", "delete from feed_readers"],
    ["console", "create table more (id int)"],
    ["reader", "select name from subscriptions"],
    ["reader", "select * from digest_key"],
    ["reader", "select * from dead_letters"],
    ["reader", "delete from bookings"],
    ["reader", "update feed_position set last_id = 0"],
  ])("by PostgreSQL: %s may not %s", async (name, statement) => {
    await expect(poolOf.get(name)?.query(statement)).rejects.toMatchObject({ code: "42501" });
  });
});

test("a server whose certificate no authority has signed gets no password and no event", async () => {
  const ingest = await own.start("ingest", {
    environment: { ...environmentOf("ingest"), NODE_EXTRA_CA_CERTS: "" },
    isReady: false,
  });
  await waitFor(async () =>
    expect((await ingest.readiness()).body.problems?.join()).toMatch(/Redis does not answer \(.*SELF_SIGNED_CERT/),
  );
  const refused = await runOps(["events", "list"], { ...environmentOf("ops"), NODE_EXTRA_CA_CERTS: "" });
  expect(refused).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("SELF_SIGNED_CERT") });
});

test("a server whose certificate names another host gets no password and no event", async () => {
  const strange = { ...environmentOf("ingest"), REDIS_URL: redisUrlOf("ingest").replace("localhost", "127.0.0.1") };
  const ingest = await own.start("ingest", { environment: strange, isReady: false });
  await waitFor(async () =>
    expect((await ingest.readiness()).body.problems?.join()).toMatch(
      /Redis does not answer \(ERR_TLS_CERT_ALTNAME_INVALID\)/,
    ),
  );
  const DATABASE_URL = databaseUrl("booking_events_ops").replace("localhost", "127.0.0.1");
  const refused = await ops(["events", "list"], { DATABASE_URL });
  expect(refused).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("ALTNAME_INVALID") });
});

/** What Redis refused. A client that may not name its library works without that. */
async function refusedByRedis(): Promise<string[]> {
  const log = (await redisAdmin.call("ACL", "LOG")) as unknown[];
  return log.map((entry) => JSON.stringify(entry)).filter((entry) => !entry.includes("client|setinfo"));
}
