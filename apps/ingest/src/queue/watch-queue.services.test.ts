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
import { createEventId } from "./event-id.ts";
import { type QueueWatch, watchQueue } from "./watch-queue.ts";

/** Two servers behind one address: the way to Redis may lead to another one after each interruption. */

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
  // The same to a client as the other one.
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
  producer = createProducer({ redisUrl: url.href, prefix, onError: () => {} });
  queue = await watchQueue({ producer, logger: createLogger({ name: "test", level: "silent" }) });
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

describe("when the way to Redis leads to one without an append-only file", () => {
  test("no event is accepted before that is known", async () => {
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

  test("an event that was on its way is not said to be safe, though it is there", async () => {
    await accept();
    fit.kill("SIGSTOP");
    try {
      const outcome = accept().catch((error: Error) => error.name);
      interrupt(unfit);
      expect(await outcome).toBe("UnknownRedis");
      expect(await unfitAdmin.exists(`${prefix}:sequence`)).toBe(1);
    } finally {
      fit.kill("SIGCONT");
    }
  });
});

test("after an interruption events are accepted again as soon as Redis was looked at", async () => {
  await accept();
  interrupt(fit);
  await waitFor(accept);
  expect(queue.problems()).toEqual([]);
});

function accept(): Promise<number> {
  return queue.runOnFitRedis(() =>
    producer.enqueue({
      ...{ eventId: createEventId(), kind: "create", partner: "acme", idempotencyKey: null },
      receivedAt: "2026-11-20T00:00:00.000Z",
      payload: { consumerTripPartnerExternalReference: "TRIP-1" },
    }),
  );
}

/** Breaks all connections. New ones lead to the server. */
function interrupt(next: DataServer): void {
  leadsTo = portOf(next);
  for (const socket of sockets) socket.destroy();
}

function portOf({ url }: DataServer): number {
  return Number(new URL(url).port);
}
