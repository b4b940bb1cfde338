import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer, type IncomingMessage } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { request as requestHttps } from "node:https";
import { text } from "node:stream/consumers";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { freePort, redisUrl, waitFor } from "@booking-events/harness";
import { type Caddy, findCaddy, startCaddy } from "@booking-events/harness/start-caddy";
import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { findLeaks } from "./find-leaks.ts";
import { prepareSurroundings, type RunningApp } from "./surroundings.ts";

const secret = "a-secret-of-the-proxy-check-0123456789";
const hosts = ["127.0.0.1", "127.0.0.2"];
const path = `/booking-event/create/${secret}`;
const event = JSON.stringify({ consumerTripPartnerExternalReference: "TRIP-1" });

const program = await findCaddy(console.log);
const surroundings = prepareSurroundings(secret);
let redis: Redis;
let [port, adminPort, lookupPort, lookupAdminPort, webhooksPort, webhooksAdminPort] = [0, 0, 0, 0, 0, 0];
let caddy: Caddy;
let ingests: RunningApp[];
const unread: TLSSocket[] = [];

describe.skipIf(program === undefined)("behind deploy/Caddyfile", () => {
  beforeAll(async () => {
    redis = new Redis(redisUrl());
    [port = 0, adminPort = 0, lookupPort = 0, lookupAdminPort = 0, webhooksPort = 0, webhooksAdminPort = 0] =
      await Promise.all(Array.from({ length: 6 }, freePort));
    caddy = await startCaddy(program ?? "", {
      upstreams: hosts.map((host) => `${host}:${port}`),
      adminPort,
      lookup: { upstream: `127.0.0.1:${lookupPort}`, adminPort: lookupAdminPort },
      webhooks: { upstream: `127.0.0.1:${webhooksPort}`, adminPort: webhooksAdminPort },
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
    for (const socket of unread) socket.destroy();
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
    outgoing.end(request.body ?? event);
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

  test("subscribers reach webhooks, may wait for half a minute, and get 503 while there is none", async () => {
    const token = "t".repeat(43);
    const pull = {
      method: "GET",
      path: "/changes?wait=canary",
      headers: { Authorization: `Bearer ${token}` },
      body: "",
    };
    const { status, headers, body } = await post(pull);
    expect([status, headers["retry-after"], JSON.parse(body).code]).toEqual([503, "5", "unavailable"]);
    const slow = createServer(({ url }, response) => {
      setTimeout(() => response.end("{}"), url === "/changes/snapshot" ? 0 : 25_000);
    });
    slow.listen(webhooksPort, "127.0.0.1");
    const healthy = createServer((_request, response) => void response.end()).listen(webhooksAdminPort, "127.0.0.1");
    await Promise.all([once(slow, "listening"), once(healthy, "listening")]);
    await waitFor(async () => expect((await post({ ...pull, path: "/changes/snapshot" })).status).toBe(200), {
      timeoutMs: 60_000,
    });
    expect((await post(pull)).body).toBe("{}");
    slow.close();
    healthy.close();
    expect(caddy.output()).toContain('"uri":"/changes"');
    expect(caddy.output()).toContain('"uri":"/changes/snapshot"');
    expect(findLeaks(caddy.output(), { token, query: "canary" })).toEqual([]);
  }, 120_000);

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

  /** Sends text on a new connection. Resolves with all that comes back. */
  async function exchangeText(sent: string): Promise<string> {
    const socket = await openSocket();
    socket.write(sent);
    return text(socket);
  }

  async function openSocket(protocols?: string[]): Promise<TLSSocket> {
    const socket = connectTls({
      host: "127.0.0.1",
      port: caddy.httpsPort,
      servername: "localhost",
      ca: caddy.authority,
      ...(protocols === undefined ? {} : { ALPNProtocols: protocols }),
    });
    await once(socket, "secureConnect");
    return socket;
  }

  test("the proxy refuses CONNECT, and broken CONNECTs don't harm other requests", async () => {
    const connect = "CONNECT localhost HTTP/1.1\r\nHost: localhost\r\n\r\n";
    const answer = await exchangeText(connect.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n"));
    expect(answer).toMatch(/^HTTP\/1.1 405 .*\r\nAllow: POST\r\n/s);
    expect(answer).toContain('{"message":"Method not allowed. Use POST.","code":"wrong-method"}');

    const refused = { path: "/booking-event/create/a-guess" };
    for (let round = 0; round < 10; round += 1) {
      const sockets = await Promise.all(Array.from({ length: 20 }, () => openSocket()));
      for (const socket of sockets) socket.write(connect, () => socket.destroy());
      expect([403, 429]).toContain((await post(refused)).status);
    }
    expect((await post()).status).toBe(200);
    for (const ingest of ingests) {
      expect(ingest.child.exitCode).toBeNull();
      expect(ingest.output()).not.toContain('"level":"fatal"');
      expect(ingest.output()).not.toContain('"method":"CONNECT"');
    }
  });

  test("HTTP/2, whose unread streams took all memory, is not spoken", async () => {
    expect((await openSocket(["h2", "http/1.1"])).alpnProtocol).toBe("http/1.1");
    await expect(openSocket(["h2"])).rejects.toThrow(/no application protocol/i);
    // The attack: 12 connections of 200 streams.
    const sessions = Array.from({ length: 12 }, () => {
      const session = connectHttp2(`https://127.0.0.1:${caddy.httpsPort}`, {
        ca: caddy.authority,
        servername: "localhost",
      });
      session.on("error", () => {});
      for (let i = 0; i < 200; i += 1) session.request({ ":path": "/docs" }).on("error", () => {});
      return session;
    });
    await waitFor(() => sessions.every((session) => session.closed || session.destroyed));
    expect((await post()).status).toBe(200);
  });

  test("connections whose answers nobody reads fit into the memory, as many as its limit on open files allows", async () => {
    const { ulimits, mem_limit } = parse(await readFile("docker-compose.yml", "utf8")).services.caddy;
    expect(mem_limit).toBe("512m");
    const before = await caddy.peakMemoryBytes();
    const count = 400;
    for (let i = 0; i < count; i += 1) {
      const socket = await openSocket();
      socket.pause();
      socket.write("GET /docs HTTP/1.1\r\nHost: localhost\r\n\r\n");
      unread.push(socket);
    }
    expect((await post()).status).toBe(200);
    const each = ((await caddy.peakMemoryBytes()) - before) / count;
    // Each has a second one to an ingest.
    const needed = before + (each * ulimits.nofile) / 2;
    console.log(`${Math.round(each / 1_024)} KiB for each; ${Math.round(needed / 2 ** 20)} MiB for all`);
    expect(needed).toBeLessThan(512 * 2 ** 20);
    for (const socket of unread.splice(0)) socket.destroy();
  });

  test.each([
    ["localhost", 200],
    ["LOCALHOST", 200],
    ["localhost:443", 200],
    ["localhost.", 421],
    ["elsewhere.example", 421],
    ["127.0.0.1", 421],
    [undefined, 421],
  ])("a request for the host %s gets %d, and a line in the log", async (host, status) => {
    const lines = () => caddy.output().split("handled request").length;
    const before = lines();
    const events = await countQueued();
    const [version, header] = host === undefined ? ["1.0", ""] : ["1.1", `Host: ${host}\r\n`];
    const answer = await exchangeText(
      `POST ${path} HTTP/${version}\r\n${header}Content-Length: ${event.length}\r\nContent-Type: application/json\r\n` +
        `Connection: close\r\n\r\n${event}`,
    );
    expect(answer).toContain(`HTTP/${version} ${status} `);
    await waitFor(() => lines() === before + 1);
    expect(await countQueued()).toBe(events + (status === 200 ? 1 : 0));
  });

  test.each([
    ["zz\r\n{}\r\n0\r\n\r\n"],
    ["2\r\n{}}}\r\n0\r\n\r\n"],
    ["-1\r\n"],
    ["fffffffffffffffffff\r\n{}"],
    ["2 ; a=\n{}\r\n0\r\n\r\n"],
    [`2;${"x".repeat(5_000)}\r\n{}\r\n0\r\n\r\n`],
    ["2\r\n{}\r\n0\r\nno trailer\r\n\r\n"],
  ])("the malformed chunks %j are not to be sent again", async (chunks) => {
    const head = `POST ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n`;
    const answer = await exchangeText(
      `${head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}`,
    );
    expect(answer).toMatch(/^HTTP\/1.1 400 /);
    expect(answer).toContain('"code":"malformed-http"');
    expect(answer).not.toContain("Retry-After");
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
