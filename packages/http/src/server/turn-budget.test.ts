import { once } from "node:events";
import type { RequestListener } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { waitFor } from "@booking-events/harness";
import { createMetrics } from "@booking-events/runtime";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { Connections } from "./connections.ts";
import { PartnerFacingServer } from "./partner-facing-server.ts";
import { type Reader, TurnBudget, turnBudgetLimits } from "./turn-budget.ts";

test("a partner whose requests take much time is read in parts, and others in between", async () => {
  const connections = new Connections({ app: "ingest", maxConnections: 1_000, metrics: createMetrics("test") });
  const handled: string[] = [];
  const handle: RequestListener = (req, res) => {
    const [, partner = "", work] = (req.url ?? "").split("/");
    connections.markAuthentic(req.socket, partner);
    handled.push(partner);
    const untilMs = performance.now() + Number(work);
    while (performance.now() < untilMs);
    setImmediate(() => res.end());
  };
  const server = new PartnerFacingServer({
    handle,
    mayHaveBody: () => true,
    connections,
    keepAliveTimeoutMs: 60_000,
    observe: () => {},
  });
  server.server.listen(0, "127.0.0.1");
  await once(server.server, "listening");
  onTestFinished(() => server.stop());
  const { port } = server.server.address() as AddressInfo;

  async function open(partner: string): Promise<Socket> {
    const client = connect(port, "127.0.0.1");
    onTestFinished(() => void client.destroy());
    client.resume().write(`GET /${partner}/0 HTTP/1.1\r\nHost: x\r\n\r\n`);
    await once(client, "data");
    return client;
  }
  const crowd = await Promise.all(Array.from({ length: 100 }, () => open("acme")));
  const neighbour = await open("zenith");
  handled.length = 0;

  for (const client of crowd) client.write("GET /acme/5 HTTP/1.1\r\nHost: x\r\n\r\n");
  await waitFor(() => handled.length > 0, { intervalMs: 0 });
  neighbour.write("GET /zenith/0 HTTP/1.1\r\nHost: x\r\n\r\n");
  await waitFor(() => handled.length === 101);
  expect(handled.indexOf("zenith")).toBeLessThan(30);
});

describe("a connection", () => {
  let nowMs: number;
  let isAccepting: boolean;
  let budget: TurnBudget;
  beforeEach(() => {
    nowMs = 0;
    isAccepting = false;
    budget = new TurnBudget({ isAccepting: () => isAccepting, now: () => nowMs });
  });

  /** What Node's socket is to the budget. */
  function createSocket() {
    const handle = { reading: true, isStopped: false, readStop: () => {}, readStart: () => {} };
    handle.readStop = () => {
      handle.isStopped = true;
    };
    handle.readStart = () => {
      handle.isStopped = false;
    };
    return { bytesRead: 0, _handle: handle };
  }

  function open(partner?: string) {
    const socket = createSocket();
    const reader = budget.add(socket as unknown as Socket);
    if (partner !== undefined) budget.assign(reader, partner);
    return { socket, reader, isHeld: () => socket._handle.isStopped };
  }

  function read({ socket, reader }: { socket: { bytesRead: number }; reader: Reader }, tookMs: number, bytes = 100) {
    socket.bytesRead += bytes;
    budget.count(reader);
    nowMs += tookMs;
  }

  test("is held when its partner's time in a turn is spent, and read again in a later one", async () => {
    const [first, second, other] = [open("acme"), open("acme"), open("zenith")];
    read(first, turnBudgetLimits.readingMs + 1);
    expect(first.isHeld()).toBe(false);
    read(other, 1);
    expect([first, second, other].map(({ isHeld }) => isHeld())).toEqual([true, true, false]);
    await nextTurn();
    expect([first, second].map(({ isHeld }) => isHeld())).toEqual([false, false]);
  });

  test("is held when others without a valid secret have spent their time, until it has shown one", () => {
    const [first, second, other] = [open(), open(), open("zenith")];
    read(first, turnBudgetLimits.readingMs + 1);
    read(other, 1);
    expect([first, second, other].map(({ isHeld }) => isHeld())).toEqual([true, true, false]);
    budget.assign(second.reader, "zenith");
    expect(second.isHeld()).toBe(false);
  });

  test("costs strangers their time, too, if it has shown its secret only in this turn", () => {
    const [first, second, stranger] = [open(), open("acme"), open()];
    budget.count(first.reader);
    budget.assign(first.reader, "acme");
    nowMs += turnBudgetLimits.readingMs + 1;
    read(second, 0);
    expect([first, second, stranger].map(({ isHeld }) => isHeld())).toEqual([true, true, true]);
  });

  test("is held if it is new while others without a valid secret are held", async () => {
    const [first, other] = [open(), open("zenith")];
    read(first, turnBudgetLimits.readingMs + 1);
    read(other, 0);
    const next = open();
    expect(next.isHeld()).toBe(true);
    await nextTurn();
    expect(next.isHeld()).toBe(false);
  });

  test("waits behind those that wait already if it is new", async () => {
    const all = Array.from({ length: turnBudgetLimits.resumedPerTurn + 1 }, () => open());
    const [first, other] = [all[0] ?? open(), open("zenith")];
    read(first, turnBudgetLimits.readingMs + 1);
    read(other, 0);
    const next = open();
    await nextTurn();
    expect([all.filter(({ isHeld }) => isHeld()).length, next.isHeld()]).toEqual([1, true]);
  });

  test("is held if it turns out to be one of a partner whose connections are held", () => {
    const [first, other] = [open("acme"), open()];
    read(first, turnBudgetLimits.readingMs + 1);
    read(other, 0);
    budget.assign(other.reader, "acme");
    expect(other.isHeld()).toBe(true);
  });

  test("is not held for other work of the turn", async () => {
    const [first, second] = [open("acme"), open("acme")];
    read(first, 10_000);
    await nextTurn();
    read(second, 1);
    expect([first, second].map(({ isHeld }) => isHeld())).toEqual([false, false]);
  });

  test("waits for its turn: a few are read again at a time, those first that have waited the longest", async () => {
    const all = Array.from({ length: 3 * turnBudgetLimits.resumedPerTurn }, () => open("acme"));
    const other = open("zenith");
    const [first, second] = all;
    if (first === undefined || second === undefined) throw new Error("There are many.");
    const held = () => all.filter(({ isHeld }) => isHeld()).length;
    read(first, turnBudgetLimits.readingMs + 1);
    read(other, 0);
    expect(held()).toBe(all.length);
    await nextTurn();
    expect([held(), first.isHeld(), second.isHeld()]).toEqual([2 * turnBudgetLimits.resumedPerTurn, true, false]);
    // While some are held, the others get less time.
    read(second, turnBudgetLimits.readingWhileBusyMs + 1);
    read(other, 0);
    expect(held()).toBe(all.length);
    await nextTurn();
    expect([second.isHeld(), all[2]?.isHeld()]).toEqual([true, false]);
    for (let turn = 0; turn < 4; turn += 1) await nextTurn();
    expect(held()).toBe(0);
  });

  test("waits for some more turns while connections wait to be accepted", async () => {
    const [first, other] = [open("acme"), open("zenith")];
    isAccepting = true;
    read(first, turnBudgetLimits.readingWhileBusyMs + 1);
    read(other, 0);
    await nextTurn();
    expect(first.isHeld()).toBe(false);
    read(first, turnBudgetLimits.readingWhileBusyMs + 1);
    read(other, 0);
    for (let turn = 0; turn < turnBudgetLimits.turnsWithoutWhileAccepting; turn += 1) await nextTurn();
    expect(first.isHeld()).toBe(true);
    await nextTurn();
    expect(first.isHeld()).toBe(false);
  });

  test("that Node has stopped itself is not read again", async () => {
    const [first, other] = [open("acme"), open("zenith")];
    read(first, turnBudgetLimits.readingMs + 1);
    read(other, 0);
    first.socket._handle.reading = false;
    await nextTurn();
    expect(first.isHeld()).toBe(true);
  });

  test("that is closed meanwhile is forgotten", async () => {
    const [first, second, other] = [open("acme"), open("acme"), open("zenith")];
    read(first, turnBudgetLimits.readingMs + 1);
    read(other, 0);
    budget.remove(first.reader);
    await nextTurn();
    expect([first.isHeld(), second.isHeld()]).toEqual([true, false]);
  });

  describe("that was held for too long is late", () => {
    const held = () => {
      const [first, other] = [open("acme"), open("zenith")];
      read(first, turnBudgetLimits.readingMs + 1);
      read(other, 0);
      return first;
    };

    test("with what had waited, for as long as it takes to accept it", async () => {
      const first = held();
      nowMs += turnBudgetLimits.longestWaitMs + 1;
      await nextTurn();
      read(first, 1);
      expect(budget.isLate(first.reader)).toBe(true);
      nowMs += turnBudgetLimits.refusalMs - 2;
      expect(budget.isLate(first.reader)).toBe(true);
      nowMs += 2;
      expect(budget.isLate(first.reader)).toBe(false);
    });

    test("as long as its reads fill the buffer, because more may have waited", async () => {
      const first = held();
      nowMs += turnBudgetLimits.longestWaitMs - 10;
      await nextTurn();
      read(first, 6, 65_536);
      expect(budget.isLate(first.reader)).toBe(false);
      await nextTurn();
      read(first, 6);
      expect(budget.isLate(first.reader)).toBe(false);
      await nextTurn();
      // The read before took all that had waited.
      read(first, 6);
      expect(budget.isLate(first.reader)).toBe(false);

      const second = held();
      nowMs += turnBudgetLimits.longestWaitMs - 10;
      await nextTurn();
      read(second, 20, 65_536);
      await nextTurn();
      read(second, 1);
      expect(budget.isLate(second.reader)).toBe(true);
    });

    test("but not with what came after a turn in which there was nothing to read", async () => {
      const first = held();
      await nextTurn();
      await nextTurn();
      nowMs += turnBudgetLimits.longestWaitMs + 1;
      read(first, 1);
      expect(budget.isLate(first.reader)).toBe(false);
    });
  });
});
