import { describe, expect, test, vi } from "vitest";
import type { Fault } from "./classify-fault.ts";
import { createOutageGate } from "./wait-out-outage.ts";

class Outage extends Error {}

function classify(error: unknown): Fault {
  return { who: error instanceof Outage ? "outage" : "event", code: "TEST", message: "" };
}

function gateWithLog() {
  const changes: string[] = [];
  const gate = createOutageGate({ classify, onChange: (outage) => changes.push(outage === null ? "back" : "out") });
  return { gate, changes };
}

const never = new AbortController().signal;

describe("while the database is out", () => {
  test("work that failed by it is tried again until it succeeds, and the outage is told once", async () => {
    const { gate, changes } = gateWithLog();
    let failuresLeft = 3;
    const result = await gate.run(async () => {
      if (failuresLeft-- > 0) throw new Outage();
      return "done";
    }, never);
    expect(result).toBe("done");
    expect(changes).toEqual(["out", "back"]);
    expect(gate.currentOutage()).toBeNull();
  });

  test("one caller at a time tries, and all get through when it is back", async () => {
    const { gate, changes } = gateWithLog();
    let isOut = true;
    let running = 0;
    let mostAtOnce = 0;
    let trials = 0;
    const work = async () => {
      running += 1;
      if (gate.currentOutage() !== null) mostAtOnce = Math.max(mostAtOnce, running);
      if (gate.currentOutage() !== null && ++trials === 3) isOut = false;
      await Promise.resolve();
      running -= 1;
      if (isOut) throw new Outage();
      return "done";
    };
    await expect(
      gate.run(() => (isOut ? Promise.reject(new Outage()) : work()), AbortSignal.timeout(1)),
    ).rejects.toThrow();
    const results = await Promise.all(Array.from({ length: 20 }, () => gate.run(work, never)));
    expect(results).toEqual(Array.from({ length: 20 }, () => "done"));
    expect(mostAtOnce).toBe(1);
    expect(changes).toEqual(["out", "back"]);
  });

  test("an event's own fault shows that the database is back, and is thrown", async () => {
    const { gate, changes } = gateWithLog();
    const work = vi.fn().mockRejectedValueOnce(new Outage()).mockRejectedValueOnce(new Error("the event's"));
    await expect(gate.run(work, never)).rejects.toThrow("the event's");
    expect(changes).toEqual(["out", "back"]);
  });

  test("whoever waits is released when the worker stops", async () => {
    const { gate } = gateWithLog();
    const stopping = new AbortController();
    const work = vi.fn().mockRejectedValue(new Outage());
    const waiting = Array.from({ length: 5 }, () => gate.run(work, stopping.signal));
    const reason = new Error("stopping");
    stopping.abort(reason);
    for (const outcome of await Promise.allSettled(waiting)) {
      expect(outcome).toEqual({ status: "rejected", reason });
    }
  });
});

test("while all is well, nobody waits for anybody", async () => {
  const { gate } = gateWithLog();
  const { promise, resolve } = Promise.withResolvers<string>();
  const slow = gate.run(() => promise, never);
  expect(await gate.run(async () => "fast", never)).toBe("fast");
  resolve("slow");
  expect(await slow).toBe("slow");
});
