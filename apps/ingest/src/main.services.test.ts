import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { platform, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { redisUrl, uniquePrefix, waitFor } from "@booking-events/harness";
import { connect, exchange, type RawAnswer, requestBytes } from "@booking-events/harness/http-client";
import { acmeSecret, partner, partnersFile } from "@booking-events/harness/partners";
import { writePartnersFile } from "@booking-events/harness/partners-file";
import { readLastUses, readRefusals } from "@booking-events/queue";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { type RunningMain, runMain, startMain } from "./testing/run-main.ts";

const create = `/booking-event/create/${acmeSecret}`;
const booking = '{"consumerTripPartnerExternalReference":"T-1"}';

let folder: string;
let partnersPath: string;
let environment: Record<string, string>;
const running: RunningMain[] = [];

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "booking-events-ingest-"));
  partnersPath = join(folder, "partners.json");
  environment = { REDIS_URL: redisUrl(), QUEUE_PREFIX: uniquePrefix(), PARTNERS_FILE: partnersPath };
});

afterEach(async () => {
  for (const { child } of running) child.kill("SIGKILL");
  await Promise.all(running.splice(0).map(({ exited }) => exited));
});

afterAll(() => rmSync(folder, { recursive: true }));

describe("a failed start", () => {
  test("names every missing or invalid variable", async () => {
    const main = await run({ PORT: "http", ADMIN_PORT: "-1", LOG_LEVEL: "loud", TRUSTED_PROXY_HOPS: "all" });
    expect(await main.exited).toBe(1);
    for (const name of ["PORT", "ADMIN_PORT", "LOG_LEVEL", "TRUSTED_PROXY_HOPS", "REDIS_URL"]) {
      expect(main.output()).toMatch(new RegExp(`^ +${name} `, "m"));
    }
    expect(main.output()).not.toContain("    at ");
  });

  test.each(["PORT", "ADMIN_PORT"])("names a %s that is in use", async (variable) => {
    writePartners();
    const holder = createServer();
    await new Promise<void>((resolve) => holder.listen(0, "127.0.0.1", resolve));
    const { port } = holder.address() as { port: number };
    const main = await run({ ...environment, [variable]: String(port) });
    expect(await main.exited).toBe(1);
    expect(main.output()).toContain(`Port ${port} on 127.0.0.1 is in use`);
    expect(main.output()).toContain(`Set ${variable} `);
    expect(main.output()).not.toContain("    at ");
    holder.close();
  });
});

describe("behind a proxy that writes ports into X-Forwarded-For", () => {
  const guess = (port: number, forwardedFor: string) =>
    exchange(port, { path: "/booking-event/create/a-guess", headers: { "X-Forwarded-For": forwardedFor } });

  test("each client is throttled, logged and recorded by its own address", async () => {
    const { port, logLines } = await start({ TRUSTED_PROXY_HOPS: "1" });
    const [first, second] = ["198.51.100.7", "[2001:db8::1]"];
    // Before the others, because those that are recorded in a second are limited.
    expect((await guess(port, `${second}:50000`)).status).toBe(403);
    for (let i = 0; i < 200; i += 1) expect((await guess(port, `${first}:${40_000 + i}`)).status).toBe(403);
    expect((await guess(port, `${first}:50000`)).status).toBe(429);
    expect((await guess(port, `${second}:50001`)).status).toBe(403);
    const addresses = () => new Set(logLines().flatMap(({ ip }) => (ip === undefined ? [] : [ip])));
    await waitFor(() => expect(addresses()).toEqual(new Set(["198.51.100.7", "2001:db8::1"])));
    const since = { redisServers: redisUrl(), prefix: environment["QUEUE_PREFIX"] ?? "", since: new Date(0) };
    await waitFor(async () => {
      const recorded = (await readRefusals(since)).map(({ ip }) => ip);
      expect(recorded).toEqual(expect.arrayContaining(["198.51.100.7", "2001:db8::1"]));
    });
  });

  test("who has no readable address counts as the proxy, which the log and a metric say", async () => {
    const main = await start({ TRUSTED_PROXY_HOPS: "1" });
    expect((await guess(main.port, "canary-address")).status).toBe(403);
    const line = { outcome: "unknown-secret", ip: "127.0.0.1", isAddressUnreadable: true };
    await waitFor(() => expect(main.logLines()).toContainEqual(expect.objectContaining(line)));
    expect(await main.metrics()).toMatch(/^ingest_unreadable_addresses_total\{.*\} 1$/m);
  });
});

describe("an idle connection", () => {
  const bytes = requestBytes({ path: create, body: booking });

  test("is kept longer than Google's load balancer keeps it", async () => {
    const { port } = await start();
    expect((await exchange(port, { path: create, body: booking })).headers["Keep-Alive"]).toBe("timeout=650");
  });

  test("answers until KEEP_ALIVE_TIMEOUT_MS is over, which it announces, and then closes", async () => {
    const { port } = await start({ KEEP_ALIVE_TIMEOUT_MS: "2000" });
    const connection = await connect(port);
    let answeredAtMs = 0;
    for (let round = 0; round < 3; round += 1) {
      connection.send(bytes);
      expect(await connection.answer()).toMatchObject({ status: 200, headers: { "Keep-Alive": "timeout=2" } });
      answeredAtMs = performance.now();
      if (round < 2) await delay(1_000);
    }
    await connection.closed;
    // Node's clock of timers has whole milliseconds.
    expect(performance.now() - answeredAtMs).toBeGreaterThan(1_990);
  });

  test("that has been idle the longest makes room at MAX_CONNECTIONS, long before its time is over", async () => {
    const { port } = await start({ MAX_CONNECTIONS: "2" });
    const [first, second] = [await connect(port), await connect(port)];
    for (const connection of [first, second, first]) {
      connection.send(bytes);
      expect((await connection.answer()).status).toBe(200);
    }
    expect((await exchange(port, { path: create, body: booking })).status).toBe(200);
    await second.closed;
    expect(first.isClosed()).toBe(false);
    first.send(bytes);
    expect((await first.answer()).status).toBe(200);
  });
});

describe("stopping", () => {
  test.each(["SIGTERM", "SIGINT"] as const)("by %s answers requests in progress", async (signal) => {
    const main = await start();
    const connection = await connect(main.port);
    const bytes = requestBytes({ path: create, headers: { Expect: "100-continue" }, body: booking });
    connection.send(bytes.subarray(0, -1));
    // The request for the body shows that the app is processing the request.
    expect((await connection.answer()).status).toBe(100);
    main.child.kill(signal);
    await waitFor(() => main.logLines().some(({ msg }) => msg === "stopping"));
    expect(await main.readiness()).toMatchObject({ status: 503, body: { ready: false } });
    connection.send(bytes.subarray(-1));
    expect(await connection.answer()).toMatchObject({ status: 200, headers: { Connection: "close" } });
    expect(await main.exited).toBe(0);
    await expect(connect(main.port)).rejects.toThrow("ECONNREFUSED");
  });

  test("begins with a delay, in which it is not ready but accepts events, until a proxy has noticed", async () => {
    const main = await start({ SHUTDOWN_DELAY_MS: "60000" });
    main.child.kill("SIGTERM");
    await waitFor(async () => expect((await main.readiness()).status).toBe(503));
    expect((await exchange(main.port, { path: create, body: booking })).status).toBe(200);
  });

  test("does not wait for idle connections", async () => {
    const main = await start();
    const connections = await Promise.all([connect(main.port), connect(main.port)]);
    connections[0]?.send(requestBytes({ path: create, body: booking }));
    await connections[0]?.answer();
    main.child.kill("SIGTERM");
    expect(await main.exited).toBe(0);
    const { durationMs } = main.logLines().find(({ msg }) => msg === "stopped") ?? {};
    expect(durationMs).toBeLessThan(1_000);
  });
});

test("the last use of a secret can be read at the latest after stopping", async () => {
  const main = await start();
  const before = Date.now();
  expect((await exchange(main.port, { path: create, body: booking })).status).toBe(200);
  main.child.kill("SIGTERM");
  expect(await main.exited).toBe(0);
  const lastUses = await readLastUses({ redisServers: redisUrl(), prefix: environment["QUEUE_PREFIX"] ?? "" });
  expect(lastUses.of("acme", "s1")?.getTime()).toBeGreaterThanOrEqual(before);
  expect(lastUses.of("zenith", "s1")).toBeNull();
});

test("an old partners file does not bring a revoked secret back, neither now nor after a restart", async () => {
  const old = [partner("revoker", { "leaked-secret": null, "kept-secret": null })];
  const current = [partner("revoker", { "leaked-secret": "2026-01-01T00:00:00Z", "kept-secret": null })];
  const warnings = [expect.stringMatching(/brings back revoked secrets, which stay refused: revoker\/s1\./)];
  const ownPrefix = { QUEUE_PREFIX: uniquePrefix() };
  const first = await start(ownPrefix);
  const statusOf = async ({ port }: RunningMain, secret: string) =>
    (await exchange(port, { path: `/booking-event/create/${secret}`, body: booking })).status;
  writePartners(old);
  await waitFor(async () => (await statusOf(first, "leaked-secret")) === 200);
  writePartners(current);
  await waitFor(async () => (await statusOf(first, "leaked-secret")) === 403);
  await waitFor(async () => {
    const redis = new Redis(redisUrl());
    const recorded = await redis.hvals(`${ownPrefix.QUEUE_PREFIX.replace("}", "-records}")}:revoked`);
    redis.disconnect();
    expect(recorded).toEqual(["revoker/s1"]);
  });

  writePartners(old);
  await waitFor(async () => expect((await first.readiness()).body).toEqual({ ready: true, warnings }));
  expect(await statusOf(first, "leaked-secret")).toBe(403);
  expect(await statusOf(first, "kept-secret")).toBe(200);
  expect(await first.metrics()).toMatch(/^ingest_partners_file_revived_secrets\{.*\} 1$/m);
  expect(first.logLines()).toContainEqual(
    expect.objectContaining({ outcome: "revoked-secret", partner: "revoker", secretId: "s1" }),
  );

  const second = await startMain({ ...environment, ...ownPrefix });
  running.push(second);
  expect(await statusOf(second, "leaked-secret")).toBe(403);
  expect((await second.readiness()).body).toEqual({ ready: true, warnings });
});

test("a partner that has sent events stays a test partner, or none, whatever the partners file says then", async () => {
  const main = await start();
  const withMark = (test: boolean) =>
    writePartners([...partnersFile.partners, partner("marked", { "marked-secret": null }, { test })]);
  const send = () => exchange(main.port, { path: "/booking-event/create/marked-secret", body: booking });
  withMark(true);
  await waitFor(async () => (await send()).status === 200);
  expect(JSON.parse((await send()).body)).toEqual({ success: true, eventId: expect.any(String), test: true });

  withMark(false);
  await waitFor(async () => (await send()).status === 503);
  expect(JSON.parse((await send()).body)).toMatchObject({ code: "queue-unavailable" });
  const warnings = [expect.stringMatching(/^The partners file has changed "test" of partners .*: marked\. /)];
  expect((await main.readiness()).body).toEqual({ ready: true, warnings });
  // Nor does it with another process, which has only Redis to know it from.
  const other = await startMain({ ...environment });
  running.push(other);
  const { status } = await exchange(other.port, { path: "/booking-event/create/marked-secret", body: booking });
  expect(status).toBe(503);

  withMark(true);
  await waitFor(async () => (await send()).status === 200);
  expect((await main.readiness()).body).toEqual({ ready: true });
});

test("a change to the partners file applies without a restart; an invalid one is only reported", async () => {
  const main = await start();
  const statusOf = async (secret: string) =>
    (await exchange(main.port, { path: `/booking-event/create/${secret}`, body: booking })).status;
  expect(await statusOf("added-secret")).toBe(403);

  writePartners([...partnersFile.partners, partner("added", { "added-secret": null })]);
  await waitFor(async () => (await statusOf("added-secret")) === 200);
  expect(await statusOf("zenith-secret")).toBe(200);
  expect(await main.readiness()).toEqual({ status: 200, body: { ready: true } });

  const path = "/booking-event/create/added-secret";
  writePartners([...partnersFile.partners, partner("added", { "added-secret": null }, { held: true })]);
  await waitFor(async () => (await statusOf("added-secret")) === 503);
  expect(JSON.parse((await exchange(main.port, { path, body: booking })).body)).toMatchObject({ code: "partner-held" });
  // It counts neither as a failure of ours nor as the partner's.
  expect(await main.metrics()).toMatch(
    /^ingest_requests_total\{kind="create",status="held",partner="added",.*\} \d+$/m,
  );
  writePartners([...partnersFile.partners, partner("added", { "added-secret": null })]);
  await waitFor(async () => (await statusOf("added-secret")) === 200);

  writeFileSync(partnersPath, "{");
  const warnings = [expect.stringMatching(/partners\.json is not valid: is not JSON/)];
  await waitFor(async () => expect(await main.readiness()).toEqual({ status: 200, body: { ready: true, warnings } }));
  expect(await statusOf("added-secret")).toBe(200);
  expect(await main.metrics()).toMatch(/^ingest_partners_file_stale\{.*\} 1$/m);
  await waitFor(() =>
    expect(main.logLines()).toContainEqual(
      expect.objectContaining({ level: "error", msg: expect.stringContaining("not loaded") }),
    ),
  );

  writePartners();
  await waitFor(async () => (await statusOf("added-secret")) === 403);
  expect(await main.readiness()).toEqual({ status: 200, body: { ready: true } });

  writePartners([]);
  await waitFor(async () => (await statusOf("zenith-secret")) === 503);
  expect(await main.readiness()).toMatchObject({ status: 503, body: { ready: false } });
});

test("without a partners file ingest starts, refuses events with 503, and recovers when there is one", async () => {
  const path = join(folder, "later.json");
  const main = await start({ PARTNERS_FILE: path });
  const problems = [expect.stringMatching(/cannot be read \(ENOENT\).*ops partners add/)];
  expect(await main.readiness()).toEqual({ status: 503, body: { ready: false, problems } });
  // Without partners, no secret can be verified.
  for (const secret of [acmeSecret, "unknown"]) {
    const answer = await exchange(main.port, { path: `/booking-event/create/${secret}`, body: booking });
    expect(answer).toMatchObject({ status: 503, headers: { "Retry-After": "5" } });
  }

  writePartnersFile(path, partnersFile.partners);
  await waitFor(async () => expect((await exchange(main.port, { path: create, body: booking })).status).toBe(200));
  expect(await main.readiness()).toEqual({ status: 200, body: { ready: true } });
});

// Other systems have only 127.0.0.1 as a loopback address.
test.runIf(platform() === "linux")(
  "the admin port is on loopback only, whatever HOST is, unless ADMIN_HOST says otherwise",
  async () => {
    const live = (address: string, { adminPort }: RunningMain) => fetch(`http://${address}:${adminPort}/livez`);
    const byDefault = await start({ HOST: "0.0.0.0" });
    expect((await live("127.0.0.1", byDefault)).status).toBe(200);
    await expect(live("127.0.0.2", byDefault)).rejects.toThrow();
    const reachable = await start({ ADMIN_HOST: "0.0.0.0" });
    expect((await live("127.0.0.2", reachable)).status).toBe(200);
  },
);

describe("the log", () => {
  test("states the outcome of each request, and nothing of its content", async () => {
    const main = await start({ LOG_LEVEL: "trace", TRUSTED_PROXY_HOPS: "1" });
    const canary = "canary-9d41";
    const withCanary = JSON.stringify({ consumerTripPartnerExternalReference: canary, agentEmail: canary });
    const headers = { "X-Forwarded-For": "203.0.113.7, 198.51.100.9", "User-Agent": canary, [canary]: canary };
    const form = { ...headers, "Content-Type": "application/x-www-form-urlencoded" };
    const requests = [
      { path: `${create}?q=${canary}`, headers, body: booking },
      { path: create, headers, body: withCanary },
      { path: create, headers, body: withCanary.slice(0, -1) },
      { path: create, headers: form, body: `consumerGivenName=${canary}&consumerGivenName=${canary}` },
      { path: create, headers: { ...headers, "Idempotency-Key": canary.repeat(30) }, body: booking },
      { path: create, headers: { ...headers, "Content-Type": canary }, body: withCanary },
      { path: `/booking-event/create/${canary}`, headers, body: withCanary },
      { path: `/booking-event/create/acme-expired`, headers, body: withCanary },
      { path: `/${canary}`, headers, body: withCanary },
      // Without the headers, the request has another address, so it does not just repeat the one before.
      {
        path: `http://x:1x/booking-event/create/${acmeSecret}/${canary}`,
        headers: { [canary]: canary },
        body: withCanary,
      },
      `POST ${create} HTTP/1.1\r\n${canary}\r\n\r\n`,
    ];
    const answers: RawAnswer[] = [];
    for (const request of requests) answers.push(await exchange(main.port, request));
    expect(answers.map(({ status }) => status)).toEqual([200, 422, 400, 400, 400, 415, 403, 403, 404, 404, 400]);
    main.child.kill("SIGTERM");
    expect(await main.exited).toBe(0);

    const lines = main.logLines().filter(({ msg }) => msg === "request");
    const shown = lines.map(({ status, outcome, partner: id, secretId, route, ip }) => {
      return { status, outcome, id, secretId, route, ip };
    });
    const acme = { id: "acme", secretId: "s1", route, ip: "198.51.100.9" };
    expect(shown).toEqual([
      { status: 200, outcome: "accepted", id: "acme", route },
      { ...acme, status: 422, outcome: "invalid-data" },
      { ...acme, status: 400, outcome: "malformed-json" },
      { ...acme, status: 400, outcome: "repeated-form-field" },
      { ...acme, status: 400, outcome: "invalid-idempotency-key" },
      { ...acme, status: 415, outcome: "unsupported-type" },
      { status: 403, outcome: "unknown-secret", route, ip: "198.51.100.9" },
      { ...acme, status: 403, outcome: "expired-secret", secretId: "s2" },
      { status: 404, outcome: "no-such-path", ip: "198.51.100.9" },
      { status: 404, outcome: "no-such-path", ip: "127.0.0.1" },
      { status: 400, outcome: "malformed-http", ip: "127.0.0.1" },
    ]);
    expect(lines[1]?.["violations"]).toEqual(["agentEmail:malformed"]);
    // Support finds the line by what the partner was told.
    const ids = lines.map(({ eventId, requestId }) => requestId ?? eventId);
    expect(ids).toEqual(answers.map(({ headers }) => headers["X-Request-Id"]));
    expect(new Set(ids).size).toBe(ids.length);
    const recorded = await readRefusals({
      redisServers: environment["REDIS_URL"] ?? "",
      prefix: environment["QUEUE_PREFIX"] ?? "",
      since: new Date(0),
    });
    const recordedIds = recorded.map((refusal) => refusal.requestId);
    expect(recordedIds.toSorted()).toEqual(expect.arrayContaining(ids.slice(1)));
    for (const secretOrData of [canary, acmeSecret, "acme-expired", "T-1"]) {
      expect(main.output()).not.toContain(secretOrData);
      expect(JSON.stringify(recorded)).not.toContain(secretOrData);
    }
  });

  test.runIf(platform() === "linux")("does not prevent events from being accepted when its disk is full", async () => {
    writePartners();
    const main = await runMain(environment, { logFile: "/dev/full" });
    running.push(main);
    await waitFor(async () => expect((await main.readiness()).status).toBe(200));
    for (let i = 0; i < 10; i += 1) {
      expect((await exchange(main.port, { path: create, body: booking })).status).toBe(200);
    }
    main.child.kill("SIGTERM");
    expect(await main.exited).toBe(0);
  });

  test("does not prevent events from being accepted when nobody reads it anymore", async () => {
    const main = await start();
    main.child.stdout?.destroy();
    main.child.stderr?.destroy();
    for (let i = 0; i < 10; i += 1)
      expect((await exchange(main.port, { path: create, body: booking })).status).toBe(200);
    expect(await main.readiness()).toMatchObject({ status: 200 });
    main.child.kill("SIGTERM");
    expect(await main.exited).toBe(0);
  });

  test("is not the only output: the metrics contain nothing of requests either", async () => {
    const main = await start();
    const withUnlisted =
      '{"consumerTripPartnerExternalReference": "T-2", "canary-name": "canary", "loyaltyTier": "canary"}';
    await exchange(main.port, { path: create, body: withUnlisted });
    const tooDeep = `${"[".repeat(17)}"canary"${"]".repeat(17)}`;
    await exchange(main.port, { path: create, body: `{"consumerPhone": null, "canary": ${tooDeep}}` });
    for (const path of [create, "/booking-event/create/canary-9d41", "/canary-9d41"]) {
      await exchange(main.port, { path, body: booking });
    }
    const metrics = await main.metrics();
    expect(metrics).toMatch(/^ingest_requests_total\{.*kind="create",status="200",partner="acme".*\} 2$/m);
    // What a partner may send is there before it does, so Prometheus counts its first event.
    expect(metrics).toMatch(/^ingest_requests_total\{.*kind="delete",status="200",partner="acme".*\} 0$/m);
    expect(metrics).toMatch(/^ingest_requests_total\{.*kind="create",status="403",partner="none".*\} 1$/m);
    expect(metrics).toMatch(/^ingest_requests_total\{.*kind="none",status="404",partner="none".*\} 1$/m);
    expect(metrics).toMatch(/^ingest_request_duration_seconds_count\{.*status="200".*\} 2$/m);
    expect(metrics).toMatch(/^ingest_enqueue_duration_seconds_count\{.*\} 2$/m);
    expect(metrics).toMatch(/^ingest_unknown_fields_total\{partner="acme",name="loyaltyTier".*\} 1$/m);
    expect(metrics).toMatch(/^ingest_unknown_fields_total\{partner="acme",name="unusual".*\} 1$/m);
    expect(metrics).toMatch(/^ingest_violations_total\{field="consumerPhone",rule="null".*\} 1$/m);
    expect(metrics).toMatch(/^ingest_violations_total\{field="unlisted",rule="too-deep".*\} 1$/m);
    expect(metrics).toMatch(/^booking_events_backlog\{state="waiting".*\} [1-9]/m);
    expect(metrics).toMatch(/^booking_events_redis_up\{.*\} 1$/m);
    expect(metrics).toMatch(/^ingest_queue_available\{.*\} 1$/m);
    expect(metrics).toMatch(/^ingest_requests_in_flight\{.*\} 0$/m);
    expect(metrics).toMatch(/^ingest_rate_limit_shared\{.*\} 1$/m);
    expect(metrics).toMatch(/^booking_events_build_info\{version=".+",node="v24.*\} 1$/m);
    for (const secretOrData of ["canary", "T-1"]) expect(metrics).not.toContain(secretOrData);
  });
});

const route = "/booking-event/create/:secret";

function writePartners(partners = partnersFile.partners): void {
  writePartnersFile(partnersPath, partners);
}

async function run(given: Record<string, string>): Promise<RunningMain> {
  const main = await runMain(given);
  running.push(main);
  return main;
}

async function start(more: Record<string, string> = {}): Promise<RunningMain> {
  writePartners();
  const main = await startMain({ ...environment, ...more });
  running.push(main);
  return main;
}
