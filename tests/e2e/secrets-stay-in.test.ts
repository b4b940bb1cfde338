import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { waitFor } from "@booking-events/harness";
import { exchange, type RawAnswer, type RequestParts } from "@booking-events/harness/http-client";
import { partner } from "@booking-events/harness/partners";
import { writePartnersFile } from "@booking-events/harness/partners-file";
import { runOps } from "@booking-events/ops/testing/run-ops";
import { createProducer } from "@booking-events/queue";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findLeaks, type Secrets } from "./find-leaks.ts";
import { type RunningApp, runApp, useOwnServices } from "./surroundings.ts";

/**
 * A text for each place from which something could leak. All begin the same way, so one search finds any of them. No
 * encoder changes their characters.
 */
const canary = (place: string) => `canary7q-${place}`;
const secret = "a-secret-of-the-leak-tests-0123456789abcd";
const path = `/booking-event/create/${secret}`;
const reference = canary("reference");

const own = useOwnServices(secret);
const { environment } = own;
let redisAdmin: Redis;
let ingest: RunningApp;
let worker: RunningApp;
let port: number;
/** What must not be seen. The passwords are those that the processes have in their environment. */
let secrets: Secrets;
/** Answers, metrics and the like, with their source. The processes' output is added at the end. */
const seen: [source: string, text: string][] = [];

beforeAll(async () => {
  Object.assign(environment, { TRUSTED_PROXY_HOPS: "1", LOG_LEVEL: "trace" });
  secrets = {
    "a partner's secret": secret,
    "Redis' password": new URL(own.redis.url).password,
    "PostgreSQL's password": new URL(own.postgres.url).password,
    "a canary": canary(""),
  };
  redisAdmin = new Redis(own.redis.url, { maxRetriesPerRequest: null });
  redisAdmin.on("error", () => {});
  [ingest, worker] = await Promise.all([runApp("ingest", environment), runApp("worker", environment)]);
  port = Number(new URL(ingest.url).port);
  await Promise.all([ingest.untilReady(), worker.untilReady()]);
});

afterAll(async () => {
  await Promise.all([ingest?.stop("SIGKILL"), worker?.stop("SIGKILL")]);
  redisAdmin?.disconnect();
});

const everyHeader = {
  "Idempotency-Key": canary("idempotency-key"),
  "X-Forwarded-For": canary("forwarded-for"),
  "User-Agent": canary("user-agent"),
  Referer: `https://${canary("referer")}/`,
  Authorization: `Basic ${canary("authorization")}`,
  Cookie: `session=${canary("cookie")}`,
  [canary("header-name")]: canary("header-value"),
};

/** A booking with a canary wherever a partner can put one. */
function booking(fields: Record<string, unknown> = {}): string {
  return JSON.stringify({
    consumerTripPartnerExternalReference: reference,
    consumerGivenName: canary("listed-field"),
    consumerEmail: `${canary("email")}@example.com`,
    [canary("unlisted-name")]: { [canary("nested-name")]: [canary("nested-value")] },
    ...fields,
  });
}

async function send(request: RequestParts | string | Buffer): Promise<RawAnswer> {
  const answer = await exchange(port, request);
  seen.push([`the answer ${answer.status}`, JSON.stringify(answer)]);
  expect(answer.headers).toMatchObject({
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Content-Type": "application/json; charset=utf-8",
  });
  expect(Object.keys(answer.headers).join()).not.toMatch(/\b(server|x-powered-by|via)\b/i);
  return answer;
}

async function post(fields: Record<string, unknown>, kind = "create"): Promise<RawAnswer> {
  const headers = { ...everyHeader, "Idempotency-Key": `${canary("key")}-${JSON.stringify(fields).length}-${kind}` };
  return send({ path: `/booking-event/${kind}/${secret}?${canary("query")}`, headers, body: booking(fields) });
}

function withBearer(sent: string): RequestParts {
  return { path: "/booking-event/create", headers: { Authorization: `Bearer ${sent}` }, body: booking() };
}

async function look(): Promise<void> {
  for (const app of [ingest, worker]) {
    for (const page of ["metrics", "readyz", "livez", canary("admin-path")]) {
      seen.push([`/${page} of ${app.name}`, await (await fetch(`${app.adminUrl}/${page}`)).text()]);
    }
  }
}

describe("an accepted event", () => {
  test("is applied with everything that was sent: there is something to leak", async () => {
    const { status, body } = await send({ path: `${path}?${canary("query")}`, headers: everyHeader, body: booking() });
    expect(status).toBe(200);
    const { eventId } = JSON.parse(body);
    await waitFor(async () => {
      const { rows } = await own.pool.query("select payload, idempotency_key from booking_events");
      expect(JSON.stringify(rows)).toContain(canary("nested-value"));
      expect(rows[0].idempotency_key).toBe(canary("idempotency-key"));
    });
    const line = () => ingest.logLines().find((line) => line["eventId"] === eventId);
    // The logger writes several lines at a time.
    await waitFor(() => line() !== undefined);
    expect(line()).toEqual({
      level: "info",
      name: "ingest",
      msg: "request",
      time: expect.any(String),
      pid: expect.any(Number),
      method: "POST",
      route: "/booking-event/create/:secret",
      partner: "acme",
      eventId,
      status: 200,
      outcome: "accepted",
      durationMs: expect.any(Number),
    });
    expect((await send(withBearer(secret))).status).toBe(200);
    for (const kind of ["update", "delete"]) expect((await post({}, kind)).status).toBe(200);
    expect((await send({ path: `${path}/?${canary("query")}`, body: booking() })).status).toBe(200);
    await look();
  });
});

describe("every refusal", () => {
  const badSecret = `/booking-event/create/${canary("guessed-secret")}`;
  const body = booking();
  const text = { "Content-Type": "text/plain" };
  const refusals: [name: string, status: number, request: RequestParts | string | Buffer][] = [
    ["a guessed secret", 403, { path: badSecret, headers: everyHeader, body }],
    ["a guessed secret and a slash", 403, { path: `${badSecret}/`, headers: everyHeader, body }],
    ["a guessed secret in a header", 403, withBearer(canary("guessed-in-a-header"))],
    ["a secret in a header and in the path", 403, { ...withBearer(secret), path }],
    ["a secret that is no text", 403, { path: "/booking-event/create/%E0%A4%A", headers: everyHeader, body }],
    ["another path", 404, { path: `/${canary("path")}/${secret}`, headers: everyHeader, body }],
    ["a path in upper case", 404, { path: `/booking-event/CREATE/${secret}`, body }],
    ["another method", 405, { method: "PUT", path, headers: everyHeader, body }],
    ["an unknown method", 400, `${canary("method").toUpperCase()} ${path} HTTP/1.1\r\nHost: a\r\n\r\n`],
    ["CONNECT", 405, `CONNECT ${canary("authority")}:443 HTTP/1.1\r\nHost: ${canary("host")}\r\n\r\n`],
    ["a URL with a malformed port and no body", 422, `POST http://a:${secret}${path} HTTP/1.1\r\nHost: a\r\n\r\n`],
    ["no Host", 400, `POST ${path} HTTP/1.1\r\n\r\n`],
    ["something that is no HTTP", 400, `${secret} ${canary("noise")}\r\n\r\n`],
    ["a malformed header", 400, `POST ${path} HTTP/1.1\r\nHost: a\r\n${canary("header")}\r\n\r\n`],
    ["too much of headers", 431, { path, headers: { [canary("long")]: canary("x").repeat(1_000) } }],
    ["malformed JSON", 400, { path, headers: everyHeader, body: body.slice(0, -1) }],
    ["a JSON text", 400, { path, body: JSON.stringify(canary("text")) }],
    ["invalid UTF-8", 400, { path, body: Buffer.from(`{"a":"${canary("utf-8")}\xff"}`, "latin1") }],
    ["a malformed key", 400, { path, headers: { "Idempotency-Key": canary("key").repeat(30) }, body }],
    ["a malformed dry run", 400, { path, headers: { "X-Dry-Run": canary("dry-run") }, body }],
    [
      "a form with a name twice",
      400,
      {
        path,
        headers: { "Content-Type": "application/x-www-form-urlencoded" },
        body: `consumerGivenName=${canary("form-value")}&consumerGivenName=${canary("form-value")}`,
      },
    ],
    ["a text that is no JSON", 400, { path, headers: { ...everyHeader, ...text }, body: `{${body}` }],
    ["another type", 415, { path, headers: { ...everyHeader, ...text }, body: canary("plain-text") }],
    ["an unknown type", 415, { path, headers: { "Content-Type": canary("type/of-content") }, body }],
    ["an unknown coding", 415, { path, headers: { "Content-Encoding": canary("coding") }, body }],
    ["a body that is too large", 413, { path, body: booking({ note: canary("large").repeat(10_000) }) }],
    ["a violated rule", 422, { path, headers: everyHeader, body: booking({ consumerPhone: [canary("phone")] }) }],
    ["a malformed e-mail address", 422, { path, body: booking({ agentEmail: canary("no-address") }) }],
    ["no reference", 422, { path, body: JSON.stringify({ consumerGivenName: canary("no-reference") }) }],
  ];

  test.each(refusals)("%s: %i", async (_, status, request) => {
    expect((await send(request)).status).toBe(status);
  });

  test("guessing until the address is throttled", async () => {
    let status = 403;
    for (let guesses = 0; status === 403 && guesses < 1_000; guesses += 1) {
      ({ status } = await send({ path: badSecret, headers: everyHeader, body }));
    }
    expect(status).toBe(429);
    await look();
  });
});

test("reading a page", async () => {
  const headers = { ...everyHeader, "If-None-Match": canary("tag"), "Accept-Encoding": canary("coding") };
  for (const method of ["GET", "HEAD", "PUT"]) {
    const answer = await exchange(port, { method, path: `/openapi.json?${secret}`, headers });
    expect(answer.status).toBe(method === "PUT" ? 405 : 200);
    seen.push([`the page by ${method}`, JSON.stringify(answer)]);
  }
  await look();
});

describe("dead letters and failed attempts", () => {
  test("an event that PostgreSQL refuses, with all of its row in the error", async () => {
    await own.pool.query(`create function refuse() returns trigger language plpgsql as
      $$ begin raise exception '%', new.payload using errcode = '22000', detail = new; end $$`);
    await own.pool.query(`create trigger refuse before insert on bookings for each row
      when (new.payload ->> 'note' = 'refuse') execute function refuse()`);
    const before = await countLetters();
    expect((await post({ note: "refuse", consumerTripPartnerExternalReference: canary("refused") })).status).toBe(200);
    await waitFor(async () => expect(await countLetters()).toBe(before + 1));
  });

  test("an error whose message quotes the event, which is tried again", async () => {
    await own.pool.query(`create function quote() returns trigger language plpgsql as
      $$ begin raise exception '%', new.payload using detail = new.payload, hint = new.reference; end $$`);
    await own.pool.query(`create trigger quote before insert on bookings for each row
      when (new.payload ->> 'note' = 'quote') execute function quote()`);
    expect((await post({ note: "quote", consumerTripPartnerExternalReference: canary("quoted") })).status).toBe(200);
    await waitFor(async () => {
      const job = await findJob(canary("quoted"));
      expect(job).toMatchObject({ failedReason: expect.stringContaining("P0001"), stacktrace: expect.any(String) });
      const { data, ...rest } = job ?? {};
      seen.push(["a failed attempt in Redis", JSON.stringify(rest)]);
    });
  });

  test("an envelope that is invalid", async () => {
    const producer = createProducer({ redisServers: own.redis.url, prefix: "{booking-events}", onError: () => {} });
    await waitFor(async () => expect(await producer.findProblems()).toEqual([]));
    const before = await countLetters();
    await producer.enqueue({
      eventId: "0199a6f2-7c1e-7d0a-9d4b-3f1a2b4c5d6e",
      kind: "create",
      partner: "acme",
      receivedAt: canary("received"),
      idempotencyKey: `${canary("not ascii")}é`,
      payload: {
        consumerTripPartnerExternalReference: canary("invalid"),
        consumerPhone: [canary("phone")],
        consumerEmail: canary("no-address"),
      } as never,
    });
    await producer.close();
    await waitFor(async () => expect(await countLetters()).toBe(before + 1));
  });

  test("leave the event in its own column only", async () => {
    const { rows } = await own.pool.query("select error_code, error, envelope from dead_letters order by error_code");
    expect(rows.map(({ error_code }) => error_code)).toEqual(["22000", "INVALID_ENVELOPE"]);
    for (const { envelope, error } of rows) {
      expect(findLeaks(envelope.toString(), secrets)).toContain("a canary");
      seen.push(["the error of a dead letter", error]);
    }
  });

  async function countLetters(): Promise<number> {
    return (await own.pool.query("select 1 from dead_letters")).rowCount ?? 0;
  }

  async function findJob(text: string): Promise<Record<string, string> | undefined> {
    for (const key of await redisAdmin.keys("{booking-events}:events:????????-*")) {
      if ((await redisAdmin.type(key)) !== "hash") continue;
      const job = await redisAdmin.hgetall(key);
      if (job["data"]?.includes(text)) return job;
    }
    return undefined;
  }
});

describe("outages", () => {
  const during = { timeoutMs: 60_000 };

  test("of PostgreSQL", async () => {
    own.postgres.kill("SIGKILL");
    await own.postgres.ended();
    expect((await post({ note: "while PostgreSQL is out" })).status).toBe(200);
    await waitFor(async () => expect((await worker.readiness()).status).toBe(503), during);
    await look();
    await ops("events", "list");
    await own.postgres.restart();
    await worker.untilReady();
  });

  test("of Redis", async () => {
    own.redis.kill("SIGKILL");
    await own.redis.ended();
    await waitFor(async () => expect((await post({ note: "while Redis is out" })).status).toBe(503), during);
    await waitFor(async () => expect((await worker.readiness()).status).toBe(503), during);
    await look();
    await own.redis.restart();
    await Promise.all([ingest.untilReady(), worker.untilReady()]);
  });

  test("of the partners file, whose text is then an error's", async () => {
    await writeFile(
      join(own.folder, "partners.json"),
      `{"partners": [${JSON.stringify({ id: canary("partner") })} ${secret}`,
    );
    await waitFor(async () => expect(JSON.stringify((await ingest.readiness()).body)).toContain("warnings"));
    await look();
    await ops("partners", "list");
    writePartnersFile(join(own.folder, "partners.json"), [partner("acme", { [secret]: null })]);
  });

  test("a start with passwords that are refused", async () => {
    const wrong = {
      REDIS_URL: own.redis.url.replace(/:[^:@]+@/, `:${canary("redis-password")}@`),
      DATABASE_URL: own.postgres.url.replace(/:[^:@]+@/, `:${canary("postgres-password")}@`),
    };
    for (const name of ["ingest", "worker"] as const) {
      const app = await runApp(name, { ...environment, ...wrong });
      await waitFor(async () => expect((await app.readiness()).status).toBe(503));
      seen.push([`/readyz of ${name}`, JSON.stringify(await app.readiness())]);
      await app.stop("SIGTERM");
      seen.push([`the output of ${name} with wrong passwords`, app.output()]);
    }
    const malformed = await runApp("worker", {
      REDIS_URL: secret,
      DATABASE_URL: secret,
      CONCURRENCY: canary("number"),
    });
    expect(await malformed.stop("SIGCONT")).toBe(1);
    seen.push(["the output of a worker that can't start", malformed.output()]);
  });
});

/** Adds what an operator's command prints besides its result. */
async function ops(...args: string[]): Promise<void> {
  const { stderr } = await runOps(args, { environment });
  expect(stderr).not.toBe("");
  seen.push([`npm run ops -- ${args.join(" ")}`, stderr]);
}

describe("nothing leaks", () => {
  test("in a process' title", async () => {
    for (const app of [ingest, worker]) {
      for (const file of process.platform === "linux" ? ["cmdline", "comm"] : []) {
        const title = await readFile(`/proc/${app.child.pid}/${file}`, "utf8");
        expect(title).not.toBe("");
        seen.push([`the title of ${app.name}`, title]);
      }
    }
    seen.push(["the connections' names", String(await redisAdmin.client("LIST"))]);
    const { rows } = await own.pool.query("select application_name, query from pg_stat_activity");
    seen.push(["PostgreSQL's list of activities", JSON.stringify(rows)]);
  });

  test("in any log line, answer, metric, health check, error or failure reason", async () => {
    for (const app of [ingest, worker]) {
      expect(await app.stop("SIGTERM")).toBe(0);
      seen.push([`the output of ${app.name}`, app.output()]);
    }
    expect(seen.length).toBeGreaterThan(100);
    expect(seen.flatMap(([source, text]) => findLeaks(text, secrets).map((leak) => `${leak} in ${source}`))).toEqual(
      [],
    );
  });

  test("and each request's line names its route by the template, or not at all", () => {
    const requests = ingest.logLines().filter(({ msg }) => msg === "request" || msg === "request repeated");
    expect(requests.reduce((sum, { repeated = 1 }) => sum + Number(repeated), 0)).toBeGreaterThan(30);
    const routes = new Set(requests.map(({ route }) => route));
    expect([...routes].filter((route) => route !== undefined).toSorted()).toEqual([
      "/booking-event/create/:secret",
      "/booking-event/delete/:secret",
      "/booking-event/update/:secret",
    ]);
    for (const request of requests) {
      expect(request).toMatchObject({ outcome: expect.any(String), status: expect.any(Number) });
    }
  });
});

describe("the search for leaks", () => {
  test("finds a process whose router prints each path", async () => {
    const talkative = await runApp("ingest", { ...environment, DEBUG: "koa-router" });
    await talkative.untilReady();
    const { port } = new URL(talkative.url);
    expect((await exchange(Number(port), { path, body: booking({ note: "printed" }) })).status).toBe(200);
    await expect(talkative.stop("SIGTERM")).rejects.toThrow(/has printed a secret or a guest's data/);
    expect(findLeaks(talkative.output(), secrets)).toEqual(["a partner's secret"]);
  });

  test.each([
    ["as it is", (text: string) => `{"msg":"${text}"}`],
    ["in lower case, as a host name is", (text: string) => text.toLowerCase()],
    ["percent-encoded", (text: string) => `path=${encodeURIComponent(text)}&`],
    ["in hex, as a Buffer is printed", (text: string) => Buffer.from(`ab${text}`).toString("hex").toUpperCase()],
    ["in base64", (text: string) => Buffer.from(text).toString("base64")],
    ["in base64 with one byte before it", (text: string) => Buffer.from(`:${text} `).toString("base64")],
    ["in base64 with two bytes before it", (text: string) => Buffer.from(`u:${text}xyz`).toString("base64")],
  ])("finds a secret %s", (_, write) => {
    const planted = { planted: "A secret/with+signs" };
    expect(findLeaks(write(planted.planted), planted)).toEqual(["planted"]);
    expect(findLeaks(write("something else that is long"), planted)).toEqual([]);
  });
});
