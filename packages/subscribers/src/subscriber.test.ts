import { once } from "node:events";
import { createServer as createHttpServer, type RequestListener } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { type AddressInfo, connect, createServer as createTcpServer, type Server, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { waitFor } from "@booking-events/harness";
import { type Step, startScriptedReceiver } from "@booking-events/harness/scripted-receiver";
import { createCertificate } from "@booking-events/scripts/certificates";
import { Webhook } from "standardwebhooks";
import { afterEach, describe, expect, test } from "vitest";
import type { Resolve } from "./public-addresses.ts";
import { createSigningKey } from "./signing-keys.ts";
import { type Network, Subscriber, type SubscriberOptions } from "./subscriber.ts";

const signingKey = createSigningKey("hmac");
/** Longer than a test takes. */
const neverMs = 1_000_000;
const cleanUp: (() => unknown)[] = [];

afterEach(async () => {
  for (const clean of cleanUp.splice(0)) await clean();
});

function subscriber(url: string, network: Partial<Network> = {}, more: Partial<SubscriberOptions> = {}): Subscriber {
  const created = new Subscriber({
    ...{ url, signingKey, maxConnections: 2 },
    network: { allowPrivate: true, timeoutMs: neverMs, ...network },
    ...more,
  });
  cleanUp.push(() => created.close());
  return created;
}

const post = (to: Subscriber, { body = `{"a":1}`, signal = new AbortController().signal } = {}) =>
  to.post({ id: "hotel-7", body, signal });

async function listen(server: Server): Promise<number> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket.on("close", () => sockets.delete(socket)).on("error", () => {}));
  });
  cleanUp.push(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return (server.address() as AddressInfo).port;
}

const startHttp = async (handle: RequestListener) => `http://127.0.0.1:${await listen(createHttpServer(handle))}/hook`;

/** @param serve gets each connection as soon as a request has begun to arrive */
async function startTcp(serve: (socket: Socket, request: Buffer) => void): Promise<string> {
  const server = createTcpServer((socket) => socket.on("data", (request) => serve(socket, request)));
  return `http://127.0.0.1:${await listen(server)}/hook`;
}

async function startScript(...steps: Step[]) {
  const receiver = await startScriptedReceiver(steps);
  cleanUp.push(() => receiver.close());
  return receiver;
}

test("a post arrives whole, and Standard Webhooks' own library accepts it", async () => {
  const receiver = await startScript({ status: 204 });
  const body = JSON.stringify({ type: "booking.created", subject: "Ünïcode" });
  expect(await post(subscriber(`${receiver.url}/hook?tenant=1`), { body })).toEqual({ kind: "done", status: 204 });
  const [request] = receiver.requests;
  expect(request).toMatchObject({
    method: "POST",
    path: "/hook?tenant=1",
    headers: {
      "content-type": "application/cloudevents+json",
      "content-length": String(Buffer.byteLength(body)),
      "user-agent": expect.stringMatching(/^booking-events\/\d/),
      "webhook-id": "hotel-7",
    },
    body,
  });
  const headers = request?.headers as Record<string, string>;
  expect(new Webhook(signingKey).verify(body, headers)).toEqual(JSON.parse(body));
});

test("both keys sign until the previous one ends", async () => {
  const receiver = await startScript({ status: 200 });
  const key = createSigningKey("hmac");
  const postWhile = async (until: Date) => {
    await post(subscriber(receiver.url, {}, { previousKey: { key, until } }));
    return receiver.requests.at(-1) as { body: string; headers: Record<string, string> };
  };
  const both = await postWhile(new Date(Date.now() + 60_000));
  for (const secret of [signingKey, key]) new Webhook(secret).verify(both.body, both.headers);
  const one = await postWhile(new Date(Date.now() - 1));
  new Webhook(signingKey).verify(one.body, one.headers);
  expect(() => new Webhook(key).verify(one.body, one.headers)).toThrow("No matching signature found");
});

test("a private key signs by its own version", async () => {
  const receiver = await startScript({ status: 200 });
  await post(subscriber(receiver.url, {}, { signingKey: createSigningKey("ed25519") }));
  expect(receiver.requests[0]?.headers["webhook-signature"]).toMatch(/^v1a,\S+$/);
});

describe("an answer", () => {
  test("that redirects has failed, and nobody follows it", async () => {
    const other = await startScript({ status: 200 });
    const receiver = await startScript({ status: 307, headers: { location: other.url } });
    expect(await post(subscriber(receiver.url))).toMatchObject({ kind: "failed", failure: "http-307" });
    expect(other.requests).toEqual([]);
  });

  test("with Retry-After asks for a pause, and 410 for an end", async () => {
    const receiver = await startScript(
      { status: 429, headers: { "retry-after": "30" } },
      {
        status: 503,
        headers: { "retry-after": "Thu, 26 Nov 2026 07:01:00 GMT", date: "Thu, 26 Nov 2026 07:00:00 GMT" },
      },
      { status: 410 },
    );
    const to = subscriber(receiver.url);
    expect(await post(to)).toEqual({ kind: "wait", status: 429, pauseMs: 30_000 });
    expect(await post(to)).toEqual({ kind: "wait", status: 503, pauseMs: 60_000 });
    expect(await post(to)).toEqual({ kind: "gone", status: 410 });
  });

  test("that does not come in time has failed", async () => {
    const to = subscriber(await startHttp(() => {}), { timeoutMs: 50 });
    expect(await post(to)).toEqual({ kind: "failed", status: null, failure: "timeout" });
  });

  test("whose headers come byte by byte has failed after the time for all of it", async () => {
    const url = await startTcp((socket) => {
      socket.write("HTTP/1.1 200 OK\r\n");
      const timer = setInterval(() => socket.write("x"), 5);
      socket.on("close", () => clearInterval(timer));
    });
    expect(await post(subscriber(url, { timeoutMs: 100 }))).toMatchObject({ kind: "failed", failure: "timeout" });
  });

  test.each([
    ["nothing", ""],
    ["half of its headers", "HTTP/1.1 200 OK\r\nContent-Le"],
  ])("of which %s came has failed", async (_, start) => {
    const url = await startTcp((socket) => socket.end(start));
    expect(await post(subscriber(url))).toMatchObject({ kind: "failed", failure: "ECONNRESET" });
  });

  test("that is no HTTP has failed", async () => {
    const url = await startTcp((socket) => socket.end("220 mail.example.com ESMTP\r\n"));
    expect(await post(subscriber(url))).toMatchObject({ failure: expect.stringMatching(/^HPE_/) });
  });

  test("to a reset connection has failed", async () => {
    const url = await startTcp((socket) => socket.resetAndDestroy());
    expect(await post(subscriber(url))).toMatchObject({ failure: "ECONNRESET" });
  });

  test("counts by its status, although its body ends early", async () => {
    const receiver = await startScript("cut");
    expect(await post(subscriber(receiver.url))).toMatchObject({ kind: "done" });
  });

  test.each([
    ["endless", () => Buffer.alloc(1_024)],
    ["slow", () => Buffer.alloc(1)],
  ])("counts by its status, although its body is %s: then the connection ends", async (_, next) => {
    let sent = 0;
    let hasEnded = false;
    const url = await startHttp((_request, response) => {
      response.writeHead(200);
      const timer = setInterval(() => {
        const chunk = next();
        sent += chunk.length;
        response.write(chunk);
      }, 1);
      response.on("close", () => {
        clearInterval(timer);
        hasEnded = true;
      });
    });
    expect(await post(subscriber(url))).toEqual({ kind: "done", status: 200 });
    await waitFor(() => expect(hasEnded).toBe(true));
    expect(sent).toBeLessThan(1_024 * 1_024);
  });

  test("with too many headers has failed", async () => {
    const url = await startTcp((socket) => socket.end(`HTTP/1.1 200 OK\r\nx: ${"x".repeat(20_000)}\r\n\r\n`));
    expect(await post(subscriber(url))).toMatchObject({ failure: "HPE_HEADER_OVERFLOW" });
  });

  test("that never gets beyond interim ones has failed", async () => {
    const url = await startTcp((socket) => {
      const timer = setInterval(() => socket.write("HTTP/1.1 103 Early Hints\r\n\r\n"), 1);
      socket.on("close", () => clearInterval(timer));
    });
    expect(await post(subscriber(url))).toMatchObject({ failure: "endless-answer" });
  });

  test("that changes the protocol has failed", async () => {
    const url = await startTcp((socket) =>
      socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"),
    );
    expect(await post(subscriber(url))).toMatchObject({ kind: "failed", failure: "http-101" });
  });
});

describe("a connection", () => {
  test("is used again", async () => {
    const ports = new Set<number | undefined>();
    const to = subscriber(
      await startHttp((request, response) => {
        ports.add(request.socket.remotePort);
        response.end();
      }),
    );
    for (let number = 0; number < 3; number += 1) await post(to);
    expect(ports.size).toBe(1);
  });

  test("that the server ended while it was idle costs no attempt", async () => {
    const requests: string[] = [];
    const url = await startTcp((socket, request) => {
      const isSecond = requests.length === 1;
      requests.push(String(request));
      if (isSecond) socket.resetAndDestroy();
      else socket.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    });
    const to = subscriber(url);
    expect(await post(to)).toMatchObject({ kind: "done" });
    expect(await post(to)).toMatchObject({ kind: "done" });
    expect(requests.map((request) => /^webhook-id: (.*)$/im.exec(request)?.[1])).toEqual([
      "hotel-7",
      "hotel-7",
      "hotel-7",
    ]);
  });

  test("is one of few, and others wait for it", async () => {
    let open = 0;
    let most = 0;
    const to = subscriber(
      await startHttp((_, response) => {
        open += 1;
        most = Math.max(most, open);
        setTimeout(() => {
          open -= 1;
          response.end();
        }, 5);
      }),
    );
    const outcomes = await Promise.all(Array.from({ length: 8 }, () => post(to)));
    expect(outcomes.map(({ kind }) => kind)).toEqual(Array(8).fill("done"));
    expect(most).toBe(2);
  });

  test("ends with the signal, and the post says so", async () => {
    let hasArrived = false;
    const url = await startHttp(() => {
      hasArrived = true;
    });
    const stopping = new AbortController();
    const posting = post(subscriber(url), { signal: stopping.signal });
    posting.catch(() => {});
    await waitFor(() => expect(hasArrived).toBe(true));
    const reason = new Error("stopping");
    stopping.abort(reason);
    await expect(posting).rejects.toBe(reason);
  });

  test("needs a certificate that somebody known has signed", async () => {
    const { certificate: cert, key } = await createCertificate();
    const port = await listen(createHttpsServer({ cert, key }, (_, response) => response.end()));
    expect(await post(subscriber(`https://localhost:${port}/`))).toMatchObject({
      ...{ kind: "failed", failure: "DEPTH_ZERO_SELF_SIGNED_CERT" },
    });
  });
});

describe("without the setting for private addresses", () => {
  const { resolve, answers } = resolver();
  const refused = { allowPrivate: false, resolve };

  test("http is refused", async () => {
    const receiver = await startScript({ status: 200 });
    expect(await post(subscriber(receiver.url, refused))).toMatchObject({ kind: "failed", failure: "not-https" });
    expect(receiver.requests).toEqual([]);
  });

  test.each([
    "127.0.0.1",
    "2130706433",
    "0x7f.1",
    "0",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "[fd00:ec2::254]",
    "169.254.169.254",
  ])("https://%s is refused, and nothing connects", async (host) => {
    const { port, hasConnected } = await startSilently();
    expect(await post(subscriber(`https://${host}:${port}/`, refused))).toEqual({
      ...{ kind: "failed", status: null, failure: "private-address" },
    });
    expect(hasConnected()).toBe(false);
  });

  test("a name that leads to a private address is refused at each connection, and nothing connects", async () => {
    const { port, hasConnected } = await startSilently();
    answers.push("127.0.0.1", "::ffff:127.0.0.1");
    const to = subscriber(`https://hooks.example.com:${port}/`, refused);
    expect(await post(to)).toMatchObject({ failure: "private-address" });
    expect(await post(to)).toMatchObject({ failure: "private-address" });
    expect(hasConnected()).toBe(false);
  });

  /** A server that says nothing, only whether somebody connected to it. */
  async function startSilently() {
    let connections = 0;
    const port = await listen(createTcpServer(() => (connections += 1)));
    return { port, hasConnected: () => connections > 0 };
  }

  function resolver() {
    const answers: string[] = [];
    const resolve = ((_: string, __: object, callback: (error: null, found: object[]) => void) =>
      callback(null, [{ address: answers.shift(), family: 4 }])) as unknown as Resolve;
    return { resolve, answers };
  }
});

describe("with a proxy", () => {
  /** A proxy that connects everything to one port. */
  async function startProxy(port: number) {
    const asked: string[] = [];
    const server = createHttpServer(async (request, response) => {
      asked.push(`${request.method} ${request.url}: ${await text(request)}`);
      response.end();
    });
    server.on("connect", (request, socket: Socket) => {
      asked.push(`CONNECT ${request.url} ${request.headers["proxy-authorization"]}`);
      const target = connect(port, "127.0.0.1", () => {
        socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
        target.pipe(socket).pipe(target);
      });
      target.on("error", () => socket.destroy());
    });
    return { proxyUrl: `http://user:p%40ss@127.0.0.1:${await listen(server)}`, asked };
  }

  test("it decides about addresses, and posts go through a tunnel", async () => {
    const { certificate: cert, key } = await createCertificate();
    const port = await listen(createHttpsServer({ cert, key }, (_, response) => response.end()));
    const { proxyUrl, asked } = await startProxy(port);
    // It gets as far as the subscriber's certificate.
    expect(await post(subscriber("https://10.1.2.3/hook", { allowPrivate: false, proxyUrl }))).toMatchObject({
      failure: "DEPTH_ZERO_SELF_SIGNED_CERT",
    });
    const credentials = Buffer.from("user:p@ss").toString("base64");
    expect(asked).toEqual([`CONNECT 10.1.2.3:443 Basic ${credentials}`]);
  });

  test("http goes through it too", async () => {
    const { proxyUrl, asked } = await startProxy(0);
    expect(await post(subscriber("http://hooks.example.com/hook", { proxyUrl }))).toMatchObject({ kind: "done" });
    expect(asked).toEqual([`POST http://hooks.example.com/hook: {"a":1}`]);
  });

  test("that refuses, the post has failed", async () => {
    const proxyUrl = await startTcp((socket) => socket.end("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"));
    expect(await post(subscriber("https://hooks.example.com/", { allowPrivate: false, proxyUrl }))).toMatchObject({
      ...{ kind: "failed", failure: "ERR_PROXY_TUNNEL" },
    });
  });
});
