import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import { connect as connectHttp2, constants } from "node:http2";
import { request as requestHttps } from "node:https";
import { text } from "node:stream/consumers";
import { freePort, redisUrl, waitFor } from "@booking-events/harness";
import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { findLeaks } from "./find-leaks.ts";
import { type Caddy, caddyCanRun, startCaddy } from "./start-caddy.ts";
import { prepareSurroundings, type RunningApp } from "./surroundings.ts";

const secret = "a-secret-of-the-proxy-check-0123456789";
const hosts = ["127.0.0.1", "127.0.0.2"];
const path = `/booking-event/create/${secret}`;

const surroundings = prepareSurroundings(secret);
let redis: Redis;
let [port, adminPort, lookupPort, lookupAdminPort] = [0, 0, 0, 0];
let caddy: Caddy;
let ingests: RunningApp[];

describe.skipIf(!caddyCanRun)("behind deploy/Caddyfile", () => {
  beforeAll(async () => {
    redis = new Redis(redisUrl());
    [port = 0, adminPort = 0, lookupPort = 0, lookupAdminPort = 0] = await Promise.all(
      Array.from({ length: 4 }, freePort),
    );
    caddy = await startCaddy({
      upstreams: hosts.map((host) => `${host}:${port}`),
      adminPort,
      lookup: { upstream: `127.0.0.1:${lookupPort}`, adminPort: lookupAdminPort },
    });
  });

  beforeEach(async () => {
    ingests = await Promise.all(hosts.map(startIngest));
    // Until Caddy has noticed both.
    await waitFor(async () => {
      expect((await post({ headers: { "X-Dry-Run": "true" } })).status).toBe(200);
      for (const ingest of ingests) expect(ingest.output()).toContain("dry-run-passed");
    });
  });

  afterAll(async () => {
    await caddy?.stop();
    redis?.disconnect();
  });

  async function startIngest(host: string): Promise<RunningApp> {
    const ports = { PORT: String(port), ADMIN_PORT: String(adminPort) };
    const environment = { ...ports, HOST: host, ADMIN_HOST: host, TRUSTED_PROXY_HOPS: "1" };
    const ingest = await surroundings().start("ingest", { environment, isReady: false });
    const readyUrl = `http://${host}:${adminPort}/readyz`;
    await waitFor(async () => expect((await fetch(readyUrl)).status).toBe(200), { timeoutMs: 30_000 });
    return ingest;
  }

  interface Answered {
    status: number | undefined;
    headers: Record<string, unknown>;
    body: string;
  }

  /** Sends one request on a new connection, as a partner does. */
  async function post(
    request: { path?: string; headers?: Record<string, string>; body?: string; method?: string } = {},
  ): Promise<Answered> {
    const server = {
      host: "127.0.0.1",
      port: caddy.httpsPort,
      servername: "localhost",
      ca: caddy.authority,
      agent: false,
    };
    const headers = { Host: "localhost", "Content-Type": "application/json", ...request.headers };
    const outgoing = requestHttps({ ...server, method: "POST", path, ...request, headers });
    outgoing.end(request.body ?? JSON.stringify({ consumerTripPartnerExternalReference: "TRIP-1" }));
    const [response] = (await once(outgoing, "response")) as [IncomingMessage];
    return { status: response.statusCode, headers: response.headers, body: await text(response) };
  }

  const countQueued = () => redis.llen(`${surroundings().environment["QUEUE_PREFIX"]}:events:wait`);

  test("requests are shared between the ingests, which see the client's address, whatever the client claims", async () => {
    const guess = { path: "/booking-event/create/a-guess", headers: { "X-Forwarded-For": "203.0.113.9" } };
    await waitFor(async () => {
      expect((await post(guess)).status).toBe(403);
      for (const ingest of ingests) expect(ingest.output()).toContain('"outcome":"unknown-secret"');
    });
    for (const ingest of ingests) {
      expect(ingest.output()).toContain('"ip":"127.0.0.1"');
      expect(ingest.output()).not.toContain("203.0.113.9");
    }
  });

  test("an answer arrives as ingest sent it, and reveals nothing about the servers", async () => {
    const { status, headers, body } = await post();
    expect([status, JSON.parse(body)]).toEqual([200, { success: true, eventId: expect.any(String) }]);
    expect(headers).toMatchObject({
      "cache-control": "no-store",
      "referrer-policy": "no-referrer",
      "x-content-type-options": "nosniff",
      "content-type": "application/json; charset=utf-8",
      "strict-transport-security": "max-age=31536000",
    });
    for (const name of ["server", "via", "x-powered-by"]) expect(headers).not.toHaveProperty(name);
    const large = JSON.stringify({ note: "x".repeat(200_000) });
    expect((await post({ body: large })).status).toBe(413);
    expect((await post({ path: "/booking-event/create/a-guess", body: large })).status).toBe(403);
  });

  test("partners' questions reach lookup, and get 503 while there is none", async () => {
    const { eventId } = JSON.parse((await post()).body);
    const question = { method: "GET", path: `/booking-event/receipt/${secret}/${eventId}`, body: "" };
    const { status, headers, body } = await post(question);
    expect([status, headers["retry-after"], JSON.parse(body)]).toEqual([
      ...[
        503,
        "5",
        { message: expect.stringContaining("The question cannot be answered"), code: "lookup-unavailable" },
      ],
    ]);
    const ports = { PORT: String(lookupPort), ADMIN_PORT: String(lookupAdminPort), TRUSTED_PROXY_HOPS: "1" };
    await surroundings().start("lookup", { environment: ports });
    await waitFor(async () => {
      const answer = await post(question);
      expect([answer.status, JSON.parse(answer.body)]).toEqual([200, { eventId, status: "waiting" }]);
    });
    expect(findLeaks(caddy.output(), { secret, "an event's id": eventId })).toEqual([]);
  });

  test("plain HTTP is refused, not redirected", async () => {
    const answer = await fetch(`http://127.0.0.1:${caddy.httpPort}${path}`, {
      method: "POST",
      redirect: "manual",
      body: "{}",
    });
    expect([answer.status, await answer.json()]).toEqual([
      ...[400, { message: expect.stringContaining("Use https."), code: "not-https" }],
    ]);
  });

  test("an unknown host name is refused", async () => {
    expect((await post({ headers: { Host: "elsewhere.example" } })).status).toBe(421);
  });

  test("when one ingest is killed the other takes over, and each accepted event is queued once", async () => {
    await ingests[0]?.stop("SIGKILL");
    let accepted = 0;
    let inARow = 0;
    await waitFor(async () => {
      const { status } = await post();
      expect([200, 503]).toContain(status);
      accepted += status === 200 ? 1 : 0;
      inARow = status === 200 ? inARow + 1 : 0;
      return inARow >= 30;
    });
    expect(await countQueued()).toBe(accepted);
  });

  test("an event reaches only one ingest, even if that closes the connection after it got the event", async () => {
    await ingests[0]?.stop("SIGKILL");
    let broken = 0;
    const breaking = createServer((req) => {
      broken += 1;
      req.socket.destroy();
    }).listen(port, hosts[0]);
    const healthy = createServer((_req, res) => void res.end()).listen(adminPort, hosts[0]);
    let [sent, accepted] = [0, 0];
    await waitFor(async () => {
      const { status, headers, body } = await post({ headers: { "Idempotency-Key": `key-${sent}` } });
      sent += 1;
      if (status === 200) accepted += 1;
      else {
        expect([status, headers["retry-after"]]).toEqual([503, "5"]);
        expect(JSON.parse(body)).toEqual({
          message: expect.stringContaining("Retry the same request"),
          code: "queue-unavailable",
        });
      }
      return broken > 2;
    });
    expect(broken + accepted).toBeLessThanOrEqual(sent);
    expect(await countQueued()).toBe(accepted);
    breaking.close();
    healthy.close();
  });

  test("while there is no ingest, the answer is 503 with Retry-After", async () => {
    await Promise.all(ingests.map((ingest) => ingest.stop("SIGTERM")));
    const { status, headers, body } = await post();
    expect([status, headers["retry-after"], headers["content-type"]]).toEqual([
      503,
      "5",
      "application/json; charset=utf-8",
    ]);
    expect(JSON.parse(body)).toEqual({
      message: expect.stringContaining("Retry the same request"),
      code: "queue-unavailable",
    });
  });

  test("the proxy refuses CONNECT, and cancelled CONNECT streams don't harm other requests", async () => {
    const session = connectHttp2(`https://localhost:${caddy.httpsPort}`, {
      ca: caddy.authority,
      lookup: (_name, _options, found) => found(null, [{ address: "127.0.0.1", family: 4 }]),
    });
    session.on("error", () => {});
    const stream = session.request({ ":method": "CONNECT", ":authority": "localhost" });
    const [headers] = await once(stream, "response");
    const answer = { headers, body: await text(stream) };
    expect(answer).toMatchObject({
      headers: { ":status": 405, allow: "POST", "content-type": "application/json; charset=utf-8" },
      body: '{"message":"Method not allowed. Use POST.","code":"wrong-method"}',
    });

    const refused = { path: "/booking-event/create/a-guess" };
    for (let round = 0; round < 24; round += 1) {
      const closed = Array.from({ length: 50 }, () => {
        const stream = session.request({ ":method": "CONNECT", ":authority": "localhost" });
        stream.on("error", () => {});
        stream.close(constants.NGHTTP2_CANCEL);
        return once(stream, "close");
      });
      expect([403, 429]).toContain((await post(refused)).status);
      await Promise.all(closed);
    }
    session.destroy();
    expect((await post()).status).toBe(200);
    for (const ingest of ingests) {
      expect(ingest.child.exitCode).toBeNull();
      expect(ingest.output()).not.toContain('"level":"fatal"');
      expect(ingest.output()).not.toContain('"method":"CONNECT"');
    }
  });

  test("Caddy's log contains neither the secret nor any text that a client chose", async () => {
    const canary = "canary7q";
    const headers = {
      Referer: `https://${canary}/`,
      "User-Agent": canary,
      "Idempotency-Key": canary,
      "X-Forwarded-For": canary,
      Authorization: `Basic ${Buffer.from(`a:${secret}`).toString("base64")}`,
    };
    for (const known of [path, `${path}?${canary}`]) expect((await post({ path: known, headers })).status).toBe(200);
    for (const other of [path.toUpperCase(), `//${path}`, `/${secret}`, `${path}/${canary}`, `/%00${canary}`, `*`]) {
      await post({ path: other, headers });
    }
    expect((await post({ headers: { ...headers, Host: canary } })).status).toBe(421);
    await post({ headers: { ...headers, "X-Long": canary.repeat(4_000) } });
    await Promise.all(ingests.map((ingest) => ingest.stop("SIGKILL")));
    expect((await post({ headers })).status).toBe(503);
    await fetch(`http://127.0.0.1:${caddy.httpPort}${path}`, { method: "POST", headers: { Referer: canary } });

    const line = await waitFor(() => {
      const found = caddy
        .output()
        .split("\n")
        .findLast((line) => line.includes('"status":503'));
      expect(found).toBeDefined();
      return JSON.parse(found as string);
    });
    expect(line).toMatchObject({ request: { method: "POST", uri: "/booking-event/create/" } });
    console.log(`A line of the access log:\n${JSON.stringify(line)}`);
    for (const status of [200, 404, 503]) expect(caddy.output().includes(`"status":${status}`)).toBe(true);
    expect(findLeaks(caddy.output(), { secret, canary })).toEqual([]);
  });
});
