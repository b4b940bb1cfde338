import { NotBegun } from "@booking-events/store";
import { describe, expect, test } from "vitest";
import { createOutageGate } from "./wait-out-outage.ts";

const never = new AbortController().signal;

/** A gate over a database that takes writes or does not, as the test says. */
function createGate({ signal = never } = {}) {
  const database = { isOut: false, probes: 0, probesAtOnce: 0, mostProbesAtOnce: 0, failsAtProbe: Number.NaN };
  const changes: string[] = [];
  const gate = createOutageGate({
    async probe() {
      database.probes += 1;
      database.probesAtOnce += 1;
      database.mostProbesAtOnce = Math.max(database.mostProbesAtOnce, database.probesAtOnce);
      await new Promise((resolve) => setImmediate(resolve));
      database.probesAtOnce -= 1;
      if (database.isOut) throw new NotBegun();
    },
    onChange: (outage) => changes.push(outage === null ? "back" : "out"),
    signal,
  });
  return { gate, database, changes };
}

describe("while PostgreSQL is out", () => {
  test.each([
    ["before its transaction began", () => new NotBegun()],
    ["in a statement", () => new Error("Connection terminated")],
  ])("work that failed %s is done when it is back, and the outage is told once", async (_, failure) => {
    const { gate, database, changes } = createGate();
    database.isOut = true;
    const work = async () => {
      if (database.isOut) throw failure();
      return "done";
    };
    const results = Promise.all(Array.from({ length: 20 }, () => gate.run(work)));
    await expect.poll(() => database.probes).toBeGreaterThan(2);
    expect(gate.currentOutage()).not.toBeNull();
    database.isOut = false;
    expect(await results).toEqual(Array(20).fill("done"));
    expect(changes).toEqual(["out", "back"]);
    expect(gate.currentOutage()).toBeNull();
    expect(database.mostProbesAtOnce).toBe(1);
  });

  test("no work is tried: only a probe is", async () => {
    const { gate, database } = createGate();
    database.isOut = true;
    let trials = 0;
    const results = Promise.all(
      Array.from({ length: 5 }, () =>
        gate.run(async () => {
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

  test("whoever waits is released when the worker stops", async () => {
    const stopping = new AbortController();
    const { gate, database } = createGate({ signal: stopping.signal });
    database.isOut = true;
    const waiting = Array.from({ length: 5 }, () => gate.run(() => Promise.reject(new NotBegun())));
    const reason = new Error("stopping");
    stopping.abort(reason);
    for (const outcome of await Promise.allSettled(waiting)) expect(outcome).toEqual({ status: "rejected", reason });
  });
});

describe("while PostgreSQL takes writes", () => {
  test("work that fails by itself fails, whatever its error says, and nobody waits for it", async () => {
    const { gate, changes } = createGate();
    const outOfMemory = Object.assign(new Error("out of memory"), { code: "53200" });
    await expect(gate.run(() => Promise.reject(outOfMemory))).rejects.toBe(outOfMemory);
    expect(await gate.run(async () => "others")).toBe("others");
    expect(changes).toEqual([]);
  });

  test("work that fails before its transaction began is done again: it has not met its own fault, as by a way that fails now and then", async () => {
    const { gate, changes } = createGate();
    let trials = 0;
    const work = async () => {
      trials += 1;
      if (trials < 4) throw new NotBegun();
      return "done";
    };
    expect(await gate.run(work)).toBe("done");
    expect(changes).toEqual(["out", "back", "out", "back", "out", "back"]);
  });

  test("slow work keeps nobody waiting", async () => {
    const { gate } = createGate();
    const { promise, resolve } = Promise.withResolvers<string>();
    const slow = gate.run(() => promise);
    expect(await gate.run(async () => "fast")).toBe("fast");
    resolve("slow");
    expect(await slow).toBe("slow");
  });
});
