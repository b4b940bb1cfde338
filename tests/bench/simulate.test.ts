import { describe, expect, test } from "vitest";
import { findSaturation, type Model, simulate } from "./simulate.ts";

const serviceUs = 100;
const events = 100_000;
/** Of the mean, by chance, with this many events. */
const tolerance = 0.05;

const one = (service: Model["service"], servers = 1): Model => ({
  stations: { only: { servers } },
  visits: [{ station: "only", serviceUs }],
  ...(service && { service }),
});

/** Simulates servers that are busy for this share of the time. */
function waitUs(model: Model, utilization: number, servers = 1): number {
  const eventsPerSecond = (utilization * servers * 1_000_000) / serviceUs;
  return simulate(model, { eventsPerSecond, events, seed: "test" }).waitUs["only"] ?? Number.NaN;
}

function expectAbout(actual: number, expected: number): void {
  expect(Math.abs(actual / expected - 1), `${actual} is not about ${expected}`).toBeLessThan(tolerance);
}

describe("the mean wait is that of queueing theory", () => {
  test.each([0.3, 0.6, 0.8])("for M/D/1 at %d: Pollaczek and Khinchin", (load) => {
    expectAbout(waitUs(one("constant"), load), (load * serviceUs) / (2 * (1 - load)));
  });

  test.each([0.3, 0.6, 0.8])("for M/M/1 at %d", (load) => {
    expectAbout(waitUs(one("exponential"), load), (load * serviceUs) / (1 - load));
  });

  test.each([0.5, 0.8])("for M/M/4 at %d: Erlang C", (load) => {
    expectAbout(waitUs(one("exponential", 4), load, 4), (erlangC(4, load) * serviceUs) / (4 * (1 - load)));
  });

  test("for two M/M/1 in a row, of which the second sees random arrivals too (Burke)", () => {
    const stations = { first: { servers: 1 }, second: { servers: 1 } };
    const visits = [
      { station: "first", serviceUs: 60 },
      { station: "second", serviceUs: 80 },
    ];
    const model: Model = { stations, visits, service: "exponential" };
    const simulated = simulate(model, { eventsPerSecond: 9_000, events, seed: "test" });
    expectAbout(simulated.waitUs["first"] ?? Number.NaN, (0.54 * 60) / (1 - 0.54));
    expectAbout(simulated.waitUs["second"] ?? Number.NaN, (0.72 * 80) / (1 - 0.72));
  });

  test("for shards: that of one server with its share of the events", () => {
    const sharded: Model = { ...one("constant"), stations: { only: { servers: 4, isSharded: true } } };
    expectAbout(waitUs(sharded, 0.6, 4), (0.6 * serviceUs) / (2 * (1 - 0.6)));
  });
});

/** The probability that an event must wait for one of the servers. */
function erlangC(servers: number, load: number): number {
  const term = (n: number): number => (n === 0 ? 1 : (term(n - 1) * servers * load) / n);
  const allBusy = term(servers) / (1 - load);
  return allBusy / (Array.from({ length: servers }, (_, n) => term(n)).reduce((sum, value) => sum + value) + allBusy);
}

test("the same seed gives the same result, and another seed another one", () => {
  const run = (seed: string) => simulate(one("constant"), { eventsPerSecond: 5_000, events: 1_000, seed });
  expect(run("a")).toEqual(run("a"));
  expect(run("a")).not.toEqual(run("b"));
});

test("a model saturates at the rate of its busiest station, which is named", () => {
  const stations = { ingest: { servers: 2 }, redis: { servers: 1 }, worker: { servers: 2 } };
  const visits = [
    { station: "ingest", serviceUs: 70 },
    { station: "redis", serviceUs: 30 },
    { station: "worker", serviceUs: 80 },
    { station: "redis", serviceUs: 20 },
  ];
  const search = { durationS: 1, backlogS: 0.01, seed: "test" };
  const redis = findSaturation({ stations, visits }, search);
  expect(redis.station).toBe("redis");
  expectAbout(redis.eventsPerSecond, 20_000);
  const worker = findSaturation({ stations: { ...stations, redis: { servers: 2 } }, visits }, search);
  expect(worker.station).toBe("worker");
  expectAbout(worker.eventsPerSecond, 25_000);
});
