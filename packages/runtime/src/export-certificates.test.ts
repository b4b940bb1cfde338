import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { waitFor } from "@booking-events/harness";
import { createCertificate } from "@booking-events/scripts/certificates";
import { afterEach, beforeEach, expect, test } from "vitest";
import { exportCertificates } from "./export-certificates.ts";
import { createMetrics, type Registry } from "./metrics.ts";

const servers: Server[] = [];
let stopping: AbortController;
let metrics: Registry;

beforeEach(() => {
  stopping = new AbortController();
  metrics = createMetrics("test");
});

afterEach(() => {
  stopping.abort();
  for (const server of servers.splice(0)) server.close();
});

/** @returns the address of a server that calls `serve` for each connection */
async function listen(serve: (socket: Socket) => void): Promise<string> {
  const server = createServer((socket) => serve(socket.on("error", () => {})));
  servers.push(server);
  await once(server.listen(0, "127.0.0.1"), "listening");
  return `localhost:${(server.address() as AddressInfo).port}`;
}

/** @returns what begins TLS on a connection, with a certificate that expires then */
async function createTls(expiresAt: string): Promise<(socket: Socket) => void> {
  const validity = { notBeforeDate: new Date("2024-01-01"), notAfterDate: new Date(expiresAt) };
  const { certificate: cert, key } = await createCertificate(validity);
  return (socket) => void new TLSSocket(socket, { isServer: true, cert, key }).on("error", () => {});
}

async function readEnds(): Promise<Record<string, string>> {
  const lines = (await metrics.metrics()).matchAll(/^booking_events_certificate_.*server="(\w+)".* (\d+)$/gm);
  return Object.fromEntries(Array.from(lines, ([, server, end]) => [server, new Date(Number(end) * 1_000).toJSON()]));
}

test("shows until when the certificates of both servers are valid, even of one that has expired", async () => {
  const redis = await listen(await createTls("2025-01-01"));
  const beginTls = await createTls("2031-01-01");
  const requests: string[] = [];
  const postgresql = await listen((socket) =>
    socket.once("data", (request) => {
      requests.push(request.toString("hex"));
      socket.write("S");
      beginTls(socket);
    }),
  );
  const urls = { redis: `rediss://${redis}`, postgresql: `postgres://user@${postgresql}/bookings?sslmode=verify-full` };
  exportCertificates(metrics, urls, stopping.signal);
  await waitFor(async () =>
    expect(await readEnds()).toEqual({ redis: "2025-01-01T00:00:00.000Z", postgresql: "2031-01-01T00:00:00.000Z" }),
  );
  expect(requests).toEqual(["0000000804d2162f"]);
});

test("shows the certificate that expires first of a server with several hosts, even if one does not answer", async () => {
  const [one, other] = [await listen(await createTls("2031-01-01")), await listen(await createTls("2030-01-01"))];
  exportCertificates(metrics, { redis: `rediss://${one},${other},localhost:1` }, stopping.signal);
  await waitFor(async () => expect(await readEnds()).toEqual({ redis: "2030-01-01T00:00:00.000Z" }));
});

test("shows nothing, and does nothing, where a server is absent, speaks no TLS or is not asked for it", async () => {
  let connections = 0;
  const plain = await listen((socket) => {
    connections += 1;
    socket.end("N");
  });
  const urls = { redis: `rediss://${plain}`, postgresql: `postgres://user@${plain}/bookings?sslmode=require` };
  exportCertificates(metrics, urls, stopping.signal);
  await waitFor(() => connections === 2);
  exportCertificates(createMetrics("other"), { redis: "rediss://localhost:1" }, stopping.signal);
  const withoutTls = { redis: `redis://${plain}`, postgresql: `postgres://user@${plain}/bookings?sslmode=disable` };
  exportCertificates(createMetrics("another"), withoutTls, stopping.signal);
  expect(await readEnds()).toEqual({});
  expect(connections).toBe(2);
});
