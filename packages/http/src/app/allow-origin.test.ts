import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { allowOrigin } from "./allow-origin.ts";

const docs = "https://bookings.example.com";
const preflight = { "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization" };

const servers = [docs, undefined].map((origin) =>
  createServer((req, res) => {
    const answer = allowOrigin(req, res, origin);
    res.writeHead(answer?.status ?? 404, answer?.headers).end(answer?.body ?? "asked");
  }),
);
let urls: string[];

beforeAll(async () => {
  for (const server of servers) await once(server.listen(0, "127.0.0.1"), "listening");
  urls = servers.map((server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
afterAll(() => {
  for (const server of servers) server.close();
});

async function ask(origin: string, { server = 0, method = "GET", headers = {} } = {}) {
  const answer = await fetch(urls[server] ?? "", { method, headers: { Origin: origin, ...headers } });
  const names = ["origin", "headers", "methods", "credentials"];
  return [await answer.text(), ...names.map((name) => answer.headers.get(`access-control-allow-${name}`))];
}

test("the pages of one origin may read the answers, refusals too, and may send a secret in a header", async () => {
  expect(await ask(docs)).toEqual(["asked", docs, null, null, null]);
  const allowed = ["", docs, "Authorization, Content-Type", "GET, POST", null];
  expect(await ask(docs, { method: "OPTIONS", headers: preflight })).toEqual(allowed);
});

test.each([
  ["http://bookings.example.com"],
  ["https://bookings.example.com:8443"],
  ["https://bookings.example.com.attacker.example"],
  ["https://BOOKINGS.example.com"],
  ["null"],
])("those of %s may not", async (origin) => {
  const nothing = ["asked", null, null, null, null];
  expect(await ask(origin)).toEqual(nothing);
  expect(await ask(origin, { method: "OPTIONS", headers: preflight })).toEqual(nothing);
});

test("without such an origin, none may", async () => {
  expect(await ask(docs, { server: 1, method: "OPTIONS", headers: preflight })).toEqual([
    "asked",
    null,
    null,
    null,
    null,
  ]);
});
