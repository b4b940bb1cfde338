import { setImmediate as nextTurn } from "node:timers/promises";
import { FormerPrimary, NotBegun, OtherDatabase } from "@booking-events/store";
import { DatabaseError } from "pg";
import { describe, expect, test } from "vitest";
import { OutageGate } from "./wait-out-outage.ts";

const never = new AbortController().signal;

/** A gate to a database that takes writes unless the test says otherwise. Each delay is one turn of the event loop. */
function createGate({ signal = never } = {}) {
  const database = { isOut: false, probes: 0, probesAtOnce: 0, mostProbesAtOnce: 0 };
  const failure = { ofProbe: new NotBegun() as Error };
  const changes: string[] = [];
  const delaysMs: number[] = [];
  const gate = new OutageGate({
    async probe() {
      database.probes += 1;
      database.probesAtOnce += 1;
      database.mostProbesAtOnce = Math.max(database.mostProbesAtOnce, database.probesAtOnce);
      await nextTurn();
      database.probesAtOnce -= 1;
      if (database.isOut) throw failure.ofProbe;
    },
    onChange: (outage) => changes.push(outage === null ? "back" : "out"),
    signal,
    sleep(delayMs, value, options) {
      delaysMs.push(delayMs);
      return nextTurn(value, options);
    },
  });
  return { gate, database, failure, changes, delaysMs };
}

const withCode = <Failure extends Error>(error: Failure, code: string) => Object.assign(error, { code });
const databaseError = (code: string, message = "") => withCode(new DatabaseError(message, 0, "error"), code);

describe("work whose connection breaks while PostgreSQL takes writes", () => {
  const lost = () => new Error("Connection terminated unexpectedly");

  test.each([
    ["pg", lost()],
    ["read", withCode(new Error("read ECONNRESET"), "ECONNRESET")],
    ["write", withCode(new Error("write EPIPE"), "EPIPE")],
  ])(
    "is tried once more, as %s has failed: it may have led to the predecessor of this PostgreSQL",
    async (_, failed) => {
      const { gate, changes } = createGate();
      const failures = [failed];
      const work = async () => {
        const failure = failures.pop();
        if (failure) throw failure;
        return "done";
      };
      expect(await gate.throughOutages(work)).toBe("done");
      expect(changes).toEqual([]);
      expect(gate.recoveredAtMs()).toBeGreaterThan(0);
    },
  );

  test("fails if that happens again", async () => {
    const { gate } = createGate();
    let trials = 0;
    const work = async () => {
      trials += 1;
      throw lost();
    };
    await expect(gate.throughOutages(work)).rejects.toThrow("Connection terminated unexpectedly");
    expect(trials).toBe(2);
  });
});

describe("while PostgreSQL is unavailable", () => {
  test.each([
    ["before its transaction began", () => new NotBegun()],
    ["in a statement", () => new Error("Connection terminated")],
    ["by itself, as it seems", () => withCode(new Error("out of memory"), "53200")],
  ])("work that failed %s is done after the outage, which is reported once", async (_, failure) => {
    const { gate, database, changes } = createGate();
    database.isOut = true;
    const work = async () => {
      if (database.isOut) throw failure();
      return "done";
    };
    const results = Promise.all(Array.from({ length: 20 }, () => gate.throughOutages(work)));
    await expect.poll(() => database.probes).toBeGreaterThan(2);
    expect(gate.currentOutage()).not.toBeNull();
    const endedAtMs = performance.now();
    database.isOut = false;
    expect(await results).toEqual(Array(20).fill("done"));
    expect(gate.recoveredAtMs()).toBeGreaterThanOrEqual(endedAtMs);
    expect(changes).toEqual(["out", "back"]);
    expect(gate.currentOutage()).toBeNull();
    expect(database.mostProbesAtOnce).toBe(1);
  });

  test.each([
    ["did not answer", () => new FormerPrimary()],
    ["takes no writes", () => databaseError("25006")],
    ["has another database", () => new OtherDatabase("1", "2")],
  ])("work that failed on a former primary, which %s, is done on the new one", async (_, failure) => {
    const { gate, changes } = createGate();
    let trials = 0;
    const work = async () => {
      trials += 1;
      if (trials === 1) throw failure();
      return "done";
    };
    expect(await gate.throughOutages(work)).toBe("done");
    expect(changes).toEqual(["out", "back"]);
  });

  test("only a probe is tried, and no work", async () => {
    const { gate, database } = createGate();
    database.isOut = true;
    let trials = 0;
    const results = Promise.all(
      Array.from({ length: 5 }, () =>
        gate.throughOutages(async () => {
          trials += 1;
          if (database.isOut) throw new NotBegun();
        }),
      ),
    );
    await expect.poll(() => database.probes).toBeGreaterThan(2);
    expect(trials).toBe(5);
    database.isOut = false;
    await results;
  });

  test("the delays between probes double, up to five seconds", async () => {
    const { gate, database, delaysMs } = createGate();
    database.isOut = true;
    const result = gate.throughOutages(async () => {
      if (database.isOut) throw new NotBegun();
    });
    await expect.poll(() => database.probes).toBeGreaterThan(8);
    database.isOut = false;
    await result;
    expect(delaysMs.slice(0, 8)).toEqual([100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
  });

  test("the outage has the code of the last probe's failure", async () => {
    const { gate, database, failure } = createGate();
    database.isOut = true;
    const refused = Object.assign(new Error("refused"), { code: "ECONNREFUSED", syscall: "connect" });
    failure.ofProbe = new NotBegun("not begun", { cause: refused });
    const result = gate.throughOutages(async () => {
      if (database.isOut) throw new NotBegun();
    });
    await expect.poll(() => gate.currentOutage()?.code).toBe("ECONNREFUSED");
    database.isOut = false;
    await result;
  });

  test("a worker that stops sends no more probes", async () => {
    const stopping = new AbortController();
    const { gate, database } = createGate({ signal: stopping.signal });
    database.isOut = true;
    const waiting = gate.throughOutages(() => Promise.reject(new NotBegun()));
    await expect.poll(() => gate.currentOutage()).not.toBeNull();
    const { probes } = database;
    stopping.abort();
    await expect(waiting).rejects.toThrow();
    for (let turn = 0; turn < 5; turn += 1) await nextTurn();
    expect(database.probes).toBe(probes);
  });

  test("a worker that stops does not wait for a probe that hangs", async () => {
    const stopping = new AbortController();
    let isProbing = false;
    const gate = new OutageGate({
      probe() {
        isProbing = true;
        return new Promise(() => {});
      },
      onChange: () => {},
      signal: stopping.signal,
      sleep: () => nextTurn(),
    });
    const waiting = gate.throughOutages(() => Promise.reject(new NotBegun()));
    await expect.poll(() => isProbing).toBe(true);
    const reason = new Error("stopping");
    stopping.abort(reason);
    await expect(waiting).rejects.toBe(reason);
  });

  test("all work that waits is released when the worker stops", async () => {
    const stopping = new AbortController();
    const { gate, database } = createGate({ signal: stopping.signal });
    database.isOut = true;
    const waiting = Array.from({ length: 5 }, () => gate.throughOutages(() => Promise.reject(new NotBegun())));
    const reason = new Error("stopping");
    stopping.abort(reason);
    for (const outcome of await Promise.allSettled(waiting)) expect(outcome).toEqual({ status: "rejected", reason });
  });
});

describe("while PostgreSQL takes writes", () => {
  test.each([
    ["an error", withCode(new Error("out of memory"), "53200"), 1],
    ["PostgreSQL's", databaseError("57P01", "Connection terminated"), 1],
    ["no error", "Connection terminated", 1],
    ["of the content, so nothing has to be asked", databaseError("22P05"), 0],
  ])("work that fails by itself is rejected at once, and makes no other work wait: %s", async (_, failure, probes) => {
    const { gate, changes, database } = createGate();
    let trials = 0;
    const work = async () => {
      trials += 1;
      throw failure;
    };
    await expect(gate.throughOutages(work)).rejects.toBe(failure);
    expect(trials).toBe(1);
    expect(database.probes).toBe(probes);
    expect(await gate.throughOutages(async () => "others")).toBe("others");
    expect(changes).toEqual([]);
  });

  test("work whose transaction could not begin runs again, even if that happens now and then", async () => {
    const { gate, changes } = createGate();
    let trials = 0;
    const work = async () => {
      trials += 1;
      if (trials < 4) throw new NotBegun();
      return "done";
    };
    expect(await gate.throughOutages(work)).toBe("done");
    expect(changes).toEqual(["out", "back", "out", "back", "out", "back"]);
  });

  test("a failure is judged by a probe that began after it, not by an earlier one", async () => {
    const { gate, database } = createGate();
    const bug = new Error("a bug");
    await expect(gate.throughOutages(() => Promise.reject(bug))).rejects.toBe(bug);
    database.isOut = true;
    const waiting = gate.throughOutages(async () => {
      if (database.isOut) throw new Error("Connection terminated");
      return "done";
    });
    await expect.poll(() => database.probes).toBeGreaterThan(2);
    database.isOut = false;
    expect(await waiting).toBe("done");
  });

  test("slow work makes no other work wait", async () => {
    const { gate } = createGate();
    const { promise, resolve } = Promise.withResolvers<string>();
    const slow = gate.throughOutages(() => promise);
    expect(await gate.throughOutages(async () => "fast")).toBe("fast");
    resolve("slow");
    expect(await slow).toBe("slow");
  });
});
