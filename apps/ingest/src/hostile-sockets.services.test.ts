import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect as connectSocket, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { redisUrl, uniquePrefix, waitFor } from "@booking-events/harness";
import { connect, exchange, requestBytes } from "@booking-events/harness/http-client";
import { acmeSecret, partnersFile } from "@booking-events/harness/partners";
import { writePartnersFile } from "@booking-events/harness/partners-file";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { type ProcessResources, type RunningMain, startMain } from "./testing/run-main.ts";

/** Tests what sockets can do to a whole process, so ingest runs as one. */
const create = `/booking-event/create/${acmeSecret}`;
const booking = '{"consumerTripPartnerExternalReference":"T-1"}';

let folder: string;
const running: RunningMain[] = [];
const sockets: Socket[] = [];

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "booking-events-ingest-"));
  writePartnersFile(join(folder, "partners.json"), partnersFile.partners);
});

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  for (const { child } of running) child.kill("SIGKILL");
  await Promise.all(running.splice(0).map(({ exited }) => exited));
});

afterAll(() => rmSync(folder, { recursive: true }));

async function start(means: ProcessResources = {}, environment: Record<string, string> = {}): Promise<RunningMain> {
  const partners = join(folder, "partners.json");
  const main = await startMain(
    { REDIS_URL: redisUrl(), QUEUE_PREFIX: uniquePrefix(), PARTNERS_FILE: partners, ...environment },
    means,
  );
  running.push(main);
  return main;
}

async function open(port: number): Promise<Socket> {
  const socket = connectSocket({ port, host: "127.0.0.1" });
  sockets.push(socket);
  // Most of these sockets are expected to be disconnected.
  socket.on("error", () => {});
  await once(socket, "connect");
  return socket;
}

async function expectToServe(main: RunningMain): Promise<void> {
  if (main.child.exitCode !== null) throw new Error(`It ended:\n${main.output().slice(-2_000)}`);
  const path = "/booking-event/create/zenith-secret";
  // On a busy machine it may shed load for a moment.
  await waitFor(async () => expect((await exchange(main.port, { path, body: booking })).status).toBe(200));
  expect(main.child.exitCode).toBeNull();
}

describe("CONNECT", () => {
  test("is refused, logged and counted; a reset afterwards affects nobody else", async () => {
    const main = await start();
    for (let i = 0; i < 20; i += 1) {
      const connection = await connect(main.port);
      connection.send("CONNECT elsewhere.example:443 HTTP/1.1\r\nHost: elsewhere.example\r\n\r\n");
      expect(await connection.answer()).toMatchObject({ status: 405, headers: { Allow: "POST", Connection: "close" } });
      connection.socket.resetAndDestroy();
      await connection.closed;
    }
    await expectToServe(main);
    expect(await main.metrics()).toMatch(/^ingest_requests_total\{.*kind="none",status="405",partner="none".*\} 20$/m);
    await waitFor(() => {
      const [first, ...repeats] = main.logLines().filter(({ status }) => status === 405);
      expect(first).toMatchObject({ msg: "request", method: "CONNECT", outcome: "wrong-method", ip: "127.0.0.1" });
      expect(repeats.reduce((sum, { repeated }) => sum + Number(repeated), 1)).toBe(20);
    });
  });
});

describe("a small heap", () => {
  const attackers = 200;
  const dryRun = { path: create, headers: { "X-Dry-Run": "true" }, body: booking };

  test.each([
    ["refused requests", requestBytes({ method: "GET", path: "/x" }), "404"],
    ["valid requests", requestBytes(dryRun), "none"],
    ["requests with a long answer", requestBytes({ path: create, body: invalidBooking() }), "none"],
  ])(
    "is enough for %s, pipelined on 200 connections that never read an answer",
    async (_what, request, lastStatus) => {
      const main = await start({ heapMiB: 96 });
      const bytes = Buffer.concat(Array.from({ length: Math.ceil((256 * 1_024) / request.length) }, () => request));
      for (let i = 0; i < attackers; i += 1) {
        const socket = await open(main.port);
        socket.pause();
        socket.write(bytes);
      }
      // Many have ended. Node has stopped reading from others because unread answers fill the connection.
      await waitFor(async () => {
        // A slow machine refuses some, since their connections waited. Nobody reads those answers either.
        const counted = new RegExp(`^ingest_requests_total\\{.*status="(?:${lastStatus}|503)".*\\} (\\d+)$`, "gm");
        const counts = Array.from((await main.metrics()).matchAll(counted), ([, count]) => Number(count));
        expect(counts.reduce((sum, count) => sum + count, 0)).toBeGreaterThan(attackers / 10);
      });
      await expectToServe(main);
    },
    60_000,
  );
});

test("a heap of 96 MB is enough for 60 bodies in chunks of one byte, and others are served", async () => {
  const main = await start({ heapMiB: 96 });
  const headers = { "Content-Type": "application/json", "Transfer-Encoding": "chunked" };
  const bytes = Buffer.concat([requestBytes({ path: create, headers }), Buffer.from("1\r\n \r\n".repeat(60_000))]);
  const senders: Socket[] = [];
  for (let i = 0; i < 60; i += 1) senders.push(await open(main.port));
  for (const sender of senders) sender.write(bytes);
  await waitFor(() => senders.every(({ writableLength, closed }) => writableLength === 0 || closed));
  await expectToServe(main);
}, 60_000);

describe("file descriptors", () => {
  test("never run out: idle connections make room for a partner's", async () => {
    const main = await start({ openFiles: 100 });
    for (let i = 0; i < 200; i += 1) await open(main.port);
    for (let i = 0; i < 20; i += 1) await expectToServe(main);
    expect((await main.readiness()).status).toBe(200);
    expect(main.logLines()).toContainEqual(
      expect.objectContaining({ level: "warn", msg: expect.stringContaining("MAX_CONNECTIONS") }),
    );
    expect(await main.metrics()).toMatch(/^ingest_connections_closed_total\{.*reason="stranger".*\} [1-9]/m);
  });
});

/** The answer is many times as long as this request. */
function invalidBooking(): string {
  return JSON.stringify(Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`a\0${i}`, 1])));
}
