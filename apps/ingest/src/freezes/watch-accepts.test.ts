import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { AcceptWatch } from "./watch-accepts.ts";

const eachMs = 10;
/** Connections that wait at any time in a stream. */
const streamWidth = 12;

let server: Server;
let watch: AcceptWatch;
let lastPollMs: () => number;
/** When each client began to connect, by its port. */
let begunAtMs: Map<number, number>;
let measured: { waitedMs: number; measuredMs: number }[];
let probes: number;
let sockets: Socket[];
let onAccepted: () => void;

beforeEach(async () => {
  [begunAtMs, measured, probes, sockets, onAccepted] = [new Map(), [], 0, [], () => {}];
  lastPollMs = () => performance.now();
  watch = new AcceptWatch(() => lastPollMs());
  server = createServer((socket) => {
    sockets.push(socket.on("error", () => {}));
    const acceptedAtMs = performance.now();
    const measuredMs = watch.measureWait(socket);
    if (measuredMs === undefined) {
      probes += 1;
      return;
    }
    const waitedMs = acceptedAtMs - (begunAtMs.get(socket.remotePort ?? 0) ?? Number.NaN);
    measured.push({ waitedMs, measuredMs });
    expect(watch.isAccepting()).toBe(true);
    beBusy(eachMs);
    onAccepted();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
});

afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => server.close(resolve));
});

/** Each turn of the event loop that accepts a connection takes this long. */
function beBusy(ms: number): void {
  const untilMs = performance.now() + ms;
  while (performance.now() < untilMs);
}

async function connectNow(): Promise<void> {
  const startedAtMs = performance.now();
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  sockets.push(socket.on("error", () => {}));
  // The port is known once the socket has begun to connect.
  await new Promise((resolve) => process.nextTick(resolve));
  begunAtMs.set(socket.localPort ?? 0, startedAtMs);
}

function untilAccepted(count: number): Promise<void> {
  return new Promise((resolve) => {
    const onEach = onAccepted;
    onAccepted = () => {
      onEach();
      if (measured.length === count) resolve();
    };
  });
}

test("a connection that comes alone has waited since the previous poll at most", async () => {
  const polls = vi.fn(lastPollMs);
  lastPollMs = polls;
  for (let index = 1; index <= 3; index += 1) {
    await Promise.all([untilAccepted(index), connectNow()]);
    // Until a turn without a connection has passed.
    for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate);
  }
  expect(polls).toHaveBeenCalledTimes(3);
  expect(watch.isAccepting()).toBe(false);
});

test("of many that come at once, each has waited for those before it, and none is thought to have waited less", async () => {
  const count = 60;
  await Promise.all([untilAccepted(count), ...Array.from({ length: count }, connectNow)]);
  const [first, last] = [measured[0], measured.at(-1)];
  expect(last?.measuredMs).toBeGreaterThan((count - 2) * eachMs);
  // They began to connect a moment before the first turn that accepts one.
  const unnoticedMs = (first?.waitedMs ?? 0) + 1;
  expect(measured.filter(({ waitedMs, measuredMs }) => waitedMs > measuredMs + unnoticedMs)).toEqual([]);
});

test("of a stream that fills each turn, none is thought to have waited for as long as the stream lasts", async () => {
  const count = 150;
  const startedAtMs = performance.now();
  lastPollMs = () => startedAtMs;
  onAccepted = () => void connectNow();
  await Promise.all([untilAccepted(count), ...Array.from({ length: streamWidth }, connectNow)]);
  const lastedMs = performance.now() - startedAtMs;
  expect(probes).toBeGreaterThan(2);
  expect(Math.min(...measured.slice(-30).map(({ measuredMs }) => measuredMs))).toBeLessThan(lastedMs / 3);
  // Nor is any thought to have waited less than it has.
  expect(measured.filter(({ waitedMs, measuredMs }) => waitedMs > measuredMs + 1)).toEqual([]);
});

test("what was on its way before a freeze does not show that less has waited after it", async () => {
  let [probedAt, frozenAt] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  onAccepted = () => {
    void connectNow();
    if (probes === 2) probedAt = Math.min(probedAt, measured.length);
    // The next probe has begun 200 ms after that one did, and waits in the middle of the others.
    if (measured.length !== probedAt + streamWidth + 2) return;
    watch.recordFreeze(3_000);
    frozenAt = measured.length;
  };
  await Promise.all([untilAccepted(100), ...Array.from({ length: streamWidth }, connectNow)]);
  // All of these waited during the freeze.
  const after = measured.slice(frozenAt, frozenAt + streamWidth).map(({ measuredMs }) => measuredMs);
  expect(after).toHaveLength(streamWidth);
  expect(Math.min(...after)).toBeGreaterThan(3_000);
  expect(measured.at(-1)?.measuredMs).toBeLessThan(3_000);
});

test("a freeze counts, until all that was made before its end has been accepted", async () => {
  await Promise.all([untilAccepted(1), connectNow()]);
  watch.recordFreeze(3_000);
  await Promise.all([untilAccepted(2), connectNow()]);
  expect(measured[1]?.measuredMs).toBeGreaterThan(3_000);
  const count = 60;
  await Promise.all([untilAccepted(count), ...Array.from({ length: count - 2 }, connectNow)]);
  expect(probes).toBeGreaterThan(0);
  expect(measured.at(-1)?.measuredMs).toBeLessThan(3_000);
});
