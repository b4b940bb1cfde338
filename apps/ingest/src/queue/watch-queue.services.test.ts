import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { uniquePrefix, waitFor } from "@booking-events/harness";
import { createProducer, type Producer } from "@booking-events/queue";
import { createLogger } from "@booking-events/runtime";
import { type DataServer, startRedis } from "@booking-events/scripts/services";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { QueueWatch } from "./watch-queue.ts";

/** Two servers behind one address: after each interruption, the connection may lead to the other one. */

let folder: string;
let fit: DataServer;
let unfit: DataServer;
let unfitAdmin: Redis;
let way: Server;
const sockets = new Set<Socket>();
let leadsTo: number;

let prefix: string;
let producer: Producer;
let queue: QueueWatch;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "booking-events-watch-queue-"));
  fit = await startRedis({ dir: join(folder, "fit") });
  unfit = await startRedis({ dir: join(folder, "unfit") });
  const password = new URL(fit.url).password;
  unfitAdmin = new Redis(unfit.url);
  await unfitAdmin.config("SET", "appendonly", "no");
  // A client cannot tell it from the other one.
  await unfitAdmin.config("SET", "requirepass", password);
  way = createServer((socket) => {
    const onward = connect(leadsTo, "127.0.0.1");
    socket.pipe(onward).pipe(socket);
    for (const each of [socket, onward]) {
      sockets.add(each);
      each.on("error", () => {}).on("close", () => sockets.delete(each));
    }
  }).listen(0, "127.0.0.1");
  await waitFor(() => way.listening);
});

beforeEach(async () => {
  leadsTo = portOf(fit);
  prefix = uniquePrefix();
  const url = new URL(fit.url);
  url.port = String((way.address() as AddressInfo).port);
  producer = createProducer({ redisServers: url.href, prefix, onError: () => {} });
  queue = new QueueWatch(producer, createLogger({ name: "test", level: "silent" }));
  await queue.start();
  expect(queue.problems()).toEqual([]);
});

afterEach(async () => {
  queue.stop();
  await producer.close();
});

afterAll(async () => {
  unfitAdmin.disconnect();
  for (const socket of sockets) socket.destroy();
  way.close();
  await Promise.all([fit.stop(), unfit.stop()]);
  rmSync(folder, { recursive: true, force: true });
});

describe("when a new connection leads to a Redis without an append-only file", () => {
  test("no event is accepted before it is checked", async () => {
    await accept();
    interrupt(unfit);
    let accepted = 0;
    const count = () => {
      accepted += 1;
    };
    while (!queue.problems().some((problem) => problem.includes("no append-only file"))) {
      await accept().then(count, () => {});
      await nextTurn();
    }
    expect(accepted).toBe(0);
  });

  test("an event in transit is not confirmed, even if it was added", async () => {
    await accept();
    fit.kill("SIGSTOP");
    try {
      const outcome = accept().catch((error: Error) => error.name);
      interrupt(unfit);
      expect(await outcome).toBe("QueueUnavailable");
      expect(await unfitAdmin.exists(`${prefix}:sequence`)).toBe(1);
    } finally {
      fit.kill("SIGCONT");
    }
  });
});

test("after an interruption events are accepted again as soon as Redis has been checked", async () => {
  await accept();
  interrupt(fit);
  await waitFor(accept);
  expect(queue.problems()).toEqual([]);
});

function accept(): Promise<number> {
  return queue.runWhileAvailable(() =>
    producer.enqueue({
      eventId: randomUUID(),
      kind: "create",
      partner: "acme",
      idempotencyKey: null,
      receivedAt: "2026-11-20T00:00:00.000Z",
      payload: { consumerTripPartnerExternalReference: "TRIP-1" },
    }),
  );
}

/** Closes all connections. New ones lead to the server. */
function interrupt(next: DataServer): void {
  leadsTo = portOf(next);
  for (const socket of sockets) socket.destroy();
}

function portOf({ url }: DataServer): number {
  return Number(new URL(url).port);
}
