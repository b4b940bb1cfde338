import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { redisUrl, uniquePrefix, waitFor } from "@booking-events/harness";
import { type Connection, connect, exchange, requestBytes } from "@booking-events/harness/http-client";
import { acmeSecret, partnersFile } from "@booking-events/harness/partners";
import { writePartnersFile } from "@booking-events/harness/partners-file";
import type { EventKind } from "@booking-events/schema";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type RunningMain, startMain } from "../testing/run-main.ts";
import { readQueuedEvents } from "../testing/start-ingest.ts";

const freezeMs = 1_500;

let folder: string;
let redis: Redis;
let prefix: string;
let frozen: RunningMain;
let other: RunningMain;
let environment: Record<string, string>;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "booking-events-freezes-"));
  redis = new Redis(redisUrl());
  prefix = uniquePrefix();
  const partnersPath = join(folder, "partners.json");
  writePartnersFile(partnersPath, partnersFile.partners);
  environment = { REDIS_URL: redisUrl(), QUEUE_PREFIX: prefix, PARTNERS_FILE: partnersPath };
  [frozen, other] = await Promise.all([startMain(environment), startMain(environment)]);
});

afterAll(async () => {
  for (const main of [frozen, other]) main?.child.kill("SIGKILL");
  await Promise.all([frozen?.exited, other?.exited]);
  redis.disconnect();
  rmSync(folder, { recursive: true, force: true });
});

test("requests that waited during a freeze are refused, as newer ones may have been accepted", async () => {
  const [onOpenConnection, withBodyToCome] = [await connect(frozen.port), await connect(frozen.port)];
  onOpenConnection.send(event("create", "first"));
  expect((await onOpenConnection.answer()).status).toBe(200);
  const body = payload("old");
  const headers = { "Content-Length": `${body.length}`, "Content-Type": "application/json", Expect: "100-continue" };
  withBodyToCome.send(requestBytes({ path: pathOf("update"), headers }));
  expect((await withBodyToCome.answer()).status).toBe(100);
  const acceptedBefore = await countRequests(frozen, 200);

  frozen.child.kill("SIGSTOP");
  const onNewConnection = await connect(frozen.port);
  try {
    onOpenConnection.send(event("update", "old"));
    onNewConnection.send(event("delete", "old"));
    withBodyToCome.send(body);
    await giveUp(event("delete", "old"));
    for (const note of ["old", "new"]) expect((await exchange(other.port, event("update", note))).status).toBe(200);
    await wait(freezeMs);
  } finally {
    frozen.child.kill("SIGCONT");
  }

  for (const connection of [onOpenConnection, onNewConnection, withBodyToCome]) await expectRefusal(connection);
  // The client of the abandoned request has disconnected and gets no answer.
  await waitFor(async () => expect(await countRequests(frozen, 503)).toBe(4));
  await waitFor(async () => expect((await exchange(frozen.port, event("update", "newest"))).status).toBe(200));
  expect(await countRequests(frozen, 200)).toBe(acceptedBefore + 1);
  expect(await queuedNotes()).toEqual(["first", "old", "new", "newest"]);
});

// The process gets a sixteenth of a CPU, and less on a busy machine.
test("requests that waited are refused even if they are read slowly", { timeout: 120_000 }, async () => {
  frozen.child.kill("SIGSTOP");
  const waiting = await Promise.all(Array.from({ length: 60 }, () => connect(frozen.port)));
  for (const connection of waiting) connection.send(event("delete", "old"));
  const accepted = await queuedNotes();
  await wait(freezeMs);
  const stopThrottling = throttle(frozen);
  try {
    const answers = await Promise.all(waiting.map((connection) => connection.answer()));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([503]));
  } finally {
    await stopThrottling();
    for (const { socket } of waiting) socket.destroy();
  }
  await waitFor(async () => expect((await exchange(frozen.port, event("update", "newest"))).status).toBe(200));
  expect(await queuedNotes()).toEqual([...accepted, "newest"]);
});

test("a frozen ingest's backlog has room for many connections, so none comes back later", async () => {
  frozen.child.kill("SIGSTOP");
  let waiting: Connection[] = [];
  try {
    // More than Node's default backlog, with which the others would wait here until the process resumes.
    waiting = await Promise.all(Array.from({ length: 1_000 }, () => connect(frozen.port)));
  } finally {
    frozen.child.kill("SIGCONT");
    for (const { socket } of waiting) socket.destroy();
  }
});

// Retried on failure because on a busy machine the process may really have been frozen for a while.
test("hundreds of the most expensive bodies at once are not taken for a freeze, and others are still served", {
  retry: 9,
}, async () => {
  const freezesBefore = await countFreezes(other);
  const senders = await Promise.all(Array.from({ length: 300 }, () => connect(other.port)));
  const neighbour = await connect(other.port);
  const ask = async () => {
    neighbour.send(requestBytes({ path: "/booking-event/create/zenith-secret", body: payload("neighbour") }));
    return (await neighbour.answer()).status;
  };
  // Before its first valid secret, a connection shares the turns with all strangers, such as the senders' new ones.
  expect(await ask()).toBe(200);
  for (const sender of senders) sender.send(requestBytes({ path: pathOf("update"), body: expensiveBody() }));
  const statuses: number[] = [];
  while (statuses.length < 20) statuses.push(await ask());
  expect(statuses).toEqual(Array(20).fill(200));
  const answers = await Promise.all(senders.map((sender) => sender.answer()));
  const answered = new Set(answers.map(({ status, body }) => `${status} ${JSON.parse(body).message.slice(0, 20)}`));
  expect([...answered]).toContain("400 The event has a dupl");
  expect(
    [...answered].filter((answer) => !/^(400 The event has|503 (You are sending|The service is overl))/.test(answer)),
  ).toEqual([]);
  expect(await countFreezes(other)).toBe(freezesBefore);
  for (const { socket } of [...senders, neighbour]) socket.destroy();
});

// Retried for the same reason.
describe("what many connections send at once is not taken for a freeze, and others are still served", {
  retry: 9,
}, () => {
  const dryRun = { path: pathOf("create"), headers: { "X-Dry-Run": "true" } };
  const chunked = requestBytes({ path: pathOf("create"), headers: { "Transfer-Encoding": "chunked" } });

  test.each<[string, number, Buffer]>([
    ["pipelined requests", 1_000, Buffer.concat(Array(16).fill(requestBytes({ ...dryRun, body: payload("many") })))],
    ["chunks of one byte", 100, Buffer.concat([chunked, Buffer.from("1\r\n \r\n".repeat(10_000))])],
  ])("%s", async (_what, connections, bytes) => {
    const senders: Connection[] = [];
    while (senders.length < connections) {
      senders.push(...(await Promise.all(Array.from({ length: 100 }, () => connect(other.port)))));
    }
    const neighbour = await connect(other.port);
    const ask = async () => {
      neighbour.send(requestBytes({ path: "/booking-event/create/zenith-secret", body: payload("neighbour") }));
      return (await neighbour.answer()).status;
    };
    expect(await ask()).toBe(200);
    const freezesBefore = await countFreezes(other);
    for (const sender of senders) sender.send(bytes);
    const statuses: number[] = [];
    while (statuses.length < 20) statuses.push(await ask());
    expect(statuses).toEqual(Array(20).fill(200));
    expect(await countFreezes(other)).toBe(freezesBefore);
    for (const { socket } of [...senders, neighbour]) socket.destroy();
  });
});

/** Needs the exact parser, with thousands of keys and a duplicate at the end. */
function expensiveBody(): string {
  const keys = Array.from({ length: 5_900 }, (_, index) => `"k${index.toString(36)}":1e1`);
  return `{${keys.join(",")},"k1":1}`;
}

async function countFreezes(main: RunningMain): Promise<number> {
  const line = (await main.metrics()).split("\n").find((text) => text.startsWith("ingest_freezes_total"));
  return Number(line?.split(" ").at(-1));
}

/** Lets the process run for part of the time. */
function throttle({ child }: RunningMain): () => Promise<void> {
  let isOver = false;
  const throttling = (async () => {
    while (!isOver) {
      child.kill("SIGCONT");
      await wait(4);
      child.kill("SIGSTOP");
      await wait(60);
    }
    child.kill("SIGCONT");
  })();
  return () => {
    isOver = true;
    return throttling;
  };
}

/** The process and both its clocks stop for 3 s, as on a suspended machine, while Redis' clock runs on. */
const suspendOnSignal = `data:text/javascript,${encodeURIComponent(`
  process.on("SIGUSR2", () => {
    for (const clock of [performance, Date]) {
      const now = clock.now.bind(clock);
      clock.now = () => now() - 3000;
    }
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3000);
    console.log(JSON.stringify({ msg: "suspended" }));
  });
`)}`;

test("a suspended machine is detected by Redis' clock, and requests that waited are refused", async () => {
  const suspended = await startMain({ ...environment, NODE_OPTIONS: `--import=${suspendOnSignal}` });
  try {
    expect((await exchange(suspended.port, event("update", "before"))).status).toBe(200);
    const accepted = await queuedNotes();
    suspended.child.kill("SIGUSR2");
    const { port } = suspended;
    const said = (msg: string) => expect.objectContaining({ msg: expect.stringContaining(msg) });
    await waitFor(() => expect(suspended.logLines()).toContainEqual(said("suspended")));
    expect((await exchange(port, event("update", "waited"))).status).toBe(503);
    await waitFor(() => expect(suspended.logLines()).toContainEqual(said("was frozen")));
    await waitFor(async () => expect((await exchange(port, event("update", "later"))).status).toBe(200));
    expect(await queuedNotes()).toEqual([...accepted, "later"]);
  } finally {
    suspended.child.kill("SIGKILL");
    await suspended.exited;
  }
});

function pathOf(kind: EventKind): string {
  return `/booking-event/${kind}/${acmeSecret}`;
}

function payload(note: string): string {
  return JSON.stringify({ consumerTripPartnerExternalReference: "T-1", note });
}

function event(kind: EventKind, note: string): Buffer {
  return requestBytes({ path: pathOf(kind), body: payload(note) });
}

/** Like a sender whose time-out has expired: the request is already in the server's buffers. */
async function giveUp(request: Buffer): Promise<void> {
  const { socket } = await connect(frozen.port);
  await new Promise<void>((resolve) => socket.write(request, () => resolve()));
  socket.destroy();
}

async function expectRefusal(connection: Connection): Promise<void> {
  expect(await connection.answer()).toMatchObject({
    status: 503,
    headers: { "Retry-After": "5" },
    body: expect.stringContaining("The service is overloaded."),
  });
  connection.socket.destroy();
}

async function countRequests(main: RunningMain, status: number): Promise<number> {
  const lines = (await main.metrics()).split("\n").filter((line) => line.startsWith("ingest_requests_total{"));
  return lines
    .filter((line) => line.includes(`status="${status}"`))
    .reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
}

async function queuedNotes(): Promise<unknown[]> {
  return (await readQueuedEvents(redis, prefix)).map(({ payload }) => payload["note"]);
}
