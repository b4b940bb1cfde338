import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { connect, exchange, requestBytes } from "@booking-events/harness/http-client";
import { countPageReads, type Pages, RequestObserver } from "@booking-events/http";
import { createPartnerRegistry } from "@booking-events/partners";
import { createLogger, createMetrics } from "@booking-events/runtime";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startIngest, type TestIngest } from "../testing/start-ingest.ts";
import { loadPages } from "./pages.ts";

let ingest: TestIngest;

beforeAll(async () => {
  ingest = await startIngest({
    // As during an outage of everything that events need.
    partners: () => createPartnerRegistry({ partners: [] }),
    isQueueAvailable: () => false,
    isOverloaded: () => true,
    isLate: () => true,
  });
});
afterAll(() => ingest.close());

test("GET /openapi.json is the document of the contract", async () => {
  const { status, headers, body } = await exchange(ingest.port, { method: "GET", path: "/openapi.json" });
  expect(status).toBe(200);
  expect(headers["Content-Type"]).toBe("application/json; charset=utf-8");
  const contract = fileURLToPath(import.meta.resolve("@booking-events/schema/openapi.json"));
  expect(body).toBe(readFileSync(contract, "utf8"));
});

test("a client is served as it is in the repository, as text", async () => {
  const path = "/docs/clients/booking_events.py";
  const { status, headers, body } = await exchange(ingest.port, { method: "GET", path });
  expect([status, headers["Content-Type"]]).toEqual([200, "text/plain; charset=utf-8"]);
  expect(body).toBe(readFileSync(new URL(`../../../..${path}`, import.meta.url), "utf8"));
});

describe.each([...loadPages().keys()])("%s", (path) => {
  test("is served without Redis or partners, and only to GET and HEAD", async () => {
    const get = await exchange(ingest.port, { method: "GET", path: `${path}?query` });
    const head = await exchange(ingest.port, { method: "HEAD", path });
    expect([get.status, head.status]).toEqual([200, 200]);
    expect(get.headers["Content-Length"]).toBe(String(Buffer.byteLength(get.body)));
    expect({ ...head.headers, ...unique }).toEqual({ ...get.headers, ...unique });
    for (const method of ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"]) {
      const other = await exchange(ingest.port, { method, path });
      expect([other.status, other.headers["Allow"]]).toEqual([405, "GET, HEAD"]);
      expect(JSON.parse(other.body)).toEqual({ message: "Method not allowed. Use GET.", code: "wrong-method" });
    }
  });

  test("may use nothing but our own files, and sends nothing elsewhere", async () => {
    const { headers } = await exchange(ingest.port, { method: "GET", path });
    expect(headers).toMatchObject({
      "Content-Security-Policy": expect.stringMatching(/^default-src 'none'; (?!.*unsafe)(?!.*\*)(?!.*https?:)/),
      "Referrer-Policy": "no-referrer",
      "X-Content-Type-Options": "nosniff",
      "Cross-Origin-Opener-Policy": "same-origin",
      "Cross-Origin-Resource-Policy": "same-origin",
    });
    expect(Object.keys(headers).join()).not.toMatch(/server|x-powered-by/i);
  });

  test("is compressed for those who accept gzip, and its tag differs then", async () => {
    const { url } = { url: `http://127.0.0.1:${ingest.port}${path}` };
    const plain = await fetch(url, { headers: { "Accept-Encoding": "identity" } });
    const bytes = Buffer.from(await plain.arrayBuffer());
    expect([plain.headers.get("content-encoding"), plain.headers.get("vary")]).toEqual([null, "Accept-Encoding"]);
    for (const accepted of ["gzip", "br, GZIP;q=0.5", "deflate, gzip"]) {
      const connection = await connect(ingest.port);
      const raw = new Promise<Buffer>((resolve) => {
        const chunks: Buffer[] = [];
        connection.socket.on("data", (chunk) => chunks.push(chunk));
        void connection.closed.then(() => resolve(Buffer.concat(chunks)));
      });
      connection.send(requestBytes({ method: "GET", path, headers: { "Accept-Encoding": accepted } }));
      const received = await raw;
      const bodyAt = received.indexOf("\r\n\r\n") + 4;
      expect(received.subarray(0, bodyAt).toString()).toContain("\r\nContent-Encoding: gzip\r\n");
      expect(received.subarray(0, bodyAt).toString()).not.toContain(plain.headers.get("etag"));
      expect(gunzipSync(received.subarray(bodyAt)).equals(bytes)).toBe(true);
    }
    for (const refused of ["gzip;q=0", "br", "", "gzip; q=0.0"]) {
      const answer = await exchange(ingest.port, { method: "GET", path, headers: { "Accept-Encoding": refused } });
      expect(answer.headers).not.toHaveProperty("Content-Encoding");
    }
  });

  test("is not sent again to those who have it", async () => {
    const { headers } = await exchange(ingest.port, { method: "GET", path });
    const tag = headers["ETag"] ?? "";
    for (const known of [tag, `W/${tag}`, `"other", ${tag}`]) {
      const connection = await connect(ingest.port);
      connection.send(requestBytes({ method: "GET", path, headers: { "If-None-Match": known } }));
      const answer = await connection.answer({ toHead: true });
      expect([answer.status, answer.headers["ETag"]]).toEqual([304, tag]);
      await connection.closed;
    }
    const changed = await exchange(ingest.port, { method: "GET", path, headers: { "If-None-Match": '"other"' } });
    expect(changed.status).toBe(200);
  });
});

test("strangers get one page for each connection, as they get one refusal", async () => {
  const connection = await connect(ingest.port);
  connection.send(requestBytes({ method: "GET", path: "/openapi.json" }));
  connection.send(requestBytes({ method: "GET", path: "/openapi.json" }));
  expect((await connection.answer()).headers["Connection"]).toBe("close");
  await connection.closed;
  await expect(connection.answer()).rejects.toThrow("The connection ended");
});

test("a page with a query or in absolute form is the same page, and any other path is 404", async () => {
  const absolute = "GET http://x/openapi.json?a HTTP/1.1\r\nHost: x\r\n\r\n";
  expect((await exchange(ingest.port, absolute)).status).toBe(200);
  for (const path of ["/OPENAPI.json", "/openapi.json//", "//openapi.json", "/docs/../openapi.json", "/__proto__"]) {
    expect((await exchange(ingest.port, { method: "GET", path })).status).toBe(404);
  }
});

test.each([
  ["/", "docs"],
  ["/docs/", "../docs"],
  ["/docs/reference/?query", "../reference"],
  ["/openapi.json/", "../openapi.json"],
])("%s leads to %s", async (path, location) => {
  const { status, headers } = await exchange(ingest.port, { method: "GET", path });
  expect([status, headers["Location"]]).toEqual([302, location]);
  expect((await exchange(ingest.port, { method: "POST", path })).status).toBe(404);
});

test("browsers find an icon where they look for one", async () => {
  const { status, headers } = await exchange(ingest.port, { method: "GET", path: "/favicon.ico" });
  expect([status, headers["Content-Type"]]).toEqual([200, "image/svg+xml; charset=utf-8"]);
});

test("who asks ingest what lookup answers is told so, and if it is known, where lookup is", async () => {
  const lookupUrl = "https://lookup.example.com";
  const informed = await startIngest({ lookupUrl });
  for (const path of [
    "/booking-event/receipt/a-secret/x",
    "/booking-event/booking/a-secret?reference=x",
    "/booking-event/reconcile/a-secret",
    "/booking-event/activity",
    "/booking-event/booking",
    "/activity",
  ]) {
    const request = { method: "GET", path };
    const [told, unaware] = await Promise.all([exchange(informed.port, request), exchange(ingest.port, request)]);
    expect([told.status, JSON.parse(told.body)]).toEqual([
      404,
      { message: `Another service answers this. Send the request to ${lookupUrl}.`, code: "ask-lookup" },
    ]);
    expect(JSON.parse(unaware.body).message).toBe("Another service answers this. Ask us for its address.");
  }
  await informed.close();
});

test("only if lookup has another address, its origin is what pages may ask besides their own", () => {
  const policyOf = (pages: Pages) => pages.get("/docs/try-it")?.plain.headers?.["Content-Security-Policy"];
  expect(policyOf(loadPages())).toContain("connect-src 'self';");
  const pages = loadPages("https://lookup.example.com/some/path?a=1&b=2");
  expect(policyOf(pages)).toContain("connect-src 'self' https://lookup.example.com;");
  const named = 'content="https://lookup.example.com/some/path?a=1&amp;b=2"';
  expect(pages.get("/docs")?.plain.body.toString()).toContain(named);
});

test("reading pages is counted apart from events, and writes no log", async () => {
  const lines: string[] = [];
  const logger = createLogger({ name: "test", level: "trace" });
  Object.assign(logger, { info: (...line: unknown[]) => lines.push(JSON.stringify(line)) });
  const metrics = createMetrics("test");
  const observer = new RequestObserver("ingest", logger, metrics);
  const observe = countPageReads("ingest", (request) => observer.observe(request), metrics);
  for (const status of [200, 304]) observe({ requestId: "x", method: "GET", status, outcome: "page", durationMs: 1 });
  observe({ requestId: "x", method: "OPTIONS", status: 200, outcome: "preflight", durationMs: 1 });
  expect(lines).toEqual([]);
  const exported = await metrics.metrics();
  expect(exported).toMatch(/^ingest_page_reads_total\{.*status="304".*\} 1$/m);
  // Alerts and the number of workers depend on these.
  expect(exported).not.toMatch(/^ingest_request(s_total|_duration_seconds_count)\{/m);
});

const unique = { Date: "", "X-Request-Id": "" };
