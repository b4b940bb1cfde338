import { createHash } from "node:crypto";

/** Where events wait until one of the servers is free, in the order of arrival. */
interface Station {
  servers: number;
  /** Each server has a queue of its own, and an event keeps its server for all visits: nodes of Redis. */
  isSharded?: boolean;
}

export interface Visit {
  station: string;
  serviceUs: number;
}

/** A network of queues. Each event makes the visits in this order. */
export interface Model {
  stations: Readonly<Record<string, Station>>;
  visits: readonly Visit[];
  /** How the service times are distributed. Default: constant. */
  service?: "constant" | "exponential";
}

export interface Simulated {
  /** How long events wait in all visits to a station, on average, before they are served. */
  waitUs: Record<string, number>;
  /** Events that are unfinished when the last one arrives. */
  backlog: number;
}

/** Simulates random (Poisson) arrivals. The same seed gives the same result. */
export function simulate(
  { stations, visits, service = "constant" }: Model,
  { eventsPerSecond, events, seed }: { eventsPerSecond: number; events: number; seed: string },
): Simulated {
  const fraction = createFractions(seed, events * (2 + visits.length));
  const exponential = (meanUs: number) => -meanUs * Math.log(1 - fraction());
  /** When each server has finished what has arrived so far. */
  const freeAtUs = Object.fromEntries(
    Object.entries(stations).map(([name, { servers }]) => [name, new Float64Array(servers)]),
  );
  const waitUs = Object.fromEntries(Object.keys(stations).map((name) => [name, 0]));
  const arrivals = new EarliestFirst();
  let [lastArrivalUs, backlog] = [0, 0];
  for (let event = 0; event < events; event += 1) {
    lastArrivalUs += exponential(1_000_000 / eventsPerSecond);
    arrivals.add({ atUs: lastArrivalUs, visit: 0, shard: fraction() });
  }
  // Arrivals are taken in the order of time. So whoever arrives later at a station waits for all who came before.
  for (let arrival = arrivals.take(); arrival !== undefined; arrival = arrivals.take()) {
    const { atUs, visit, shard } = arrival;
    const next = visits[visit];
    if (next === undefined) {
      if (atUs > lastArrivalUs) backlog += 1;
      continue;
    }
    const { station, serviceUs } = next;
    const servers = freeAtUs[station] ?? new Float64Array();
    const server = stations[station]?.isSharded
      ? Math.floor(shard * servers.length)
      : servers.indexOf(Math.min(...servers));
    const startUs = Math.max(atUs, servers[server] ?? Number.NaN);
    const endUs = startUs + (service === "constant" ? serviceUs : exponential(serviceUs));
    servers[server] = endUs;
    waitUs[station] = (waitUs[station] ?? 0) + (startUs - atUs) / events;
    arrivals.add({ atUs: endUs, visit: visit + 1, shard });
  }
  return { waitUs, backlog };
}

/** Numbers in [0, 1) from the output of a hash function, which looks random. */
function createFractions(seed: string, count: number): () => number {
  const bytes = createHash("shake256", { outputLength: 4 * count })
    .update(seed)
    .digest();
  let offset = 0;
  return () => {
    const fraction = bytes.readUInt32LE(offset) / 2 ** 32;
    offset += 4;
    return fraction;
  };
}

interface Arrival {
  atUs: number;
  /** The index of the visit that begins. */
  visit: number;
  shard: number;
}

/** A binary heap: no entry is earlier than its parent, which is the one at half of its index. */
class EarliestFirst {
  readonly #entries: Arrival[] = [];

  add(arrival: Arrival): void {
    const entries = this.#entries;
    let index = entries.push(arrival) - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (this.#timeOf(parent) <= arrival.atUs) break;
      entries[index] = entries[parent] as Arrival;
      index = parent;
    }
    entries[index] = arrival;
  }

  take(): Arrival | undefined {
    const entries = this.#entries;
    const [first] = entries;
    const last = entries.pop();
    if (last === undefined || entries.length === 0) return first;
    let index = 0;
    for (;;) {
      const left = 2 * index + 1;
      const child = this.#timeOf(left + 1) < this.#timeOf(left) ? left + 1 : left;
      if (this.#timeOf(child) >= last.atUs) break;
      entries[index] = entries[child] as Arrival;
      index = child;
    }
    entries[index] = last;
    return first;
  }

  /** Infinity where there is no entry. */
  #timeOf(index: number): number {
    return this.#entries[index]?.atUs ?? Number.POSITIVE_INFINITY;
  }
}

export interface Saturation {
  /** The highest rate that was sustained. */
  eventsPerSecond: number;
  /** Where events wait longest just above that rate. */
  station: string;
}

/** Steps in which the interval is halved: it ends below 0.1 % of the rate. */
const steps = 10;

/**
 * Searches the rate at which a model saturates.
 *
 * @param durationS how long events arrive in each simulation
 * @param backlogS a rate is sustained if at its end no more events are unfinished than arrive in this time
 */
export function findSaturation(model: Model, { durationS, backlogS, seed }: SaturationSearch): Saturation {
  const run = (eventsPerSecond: number) => {
    const result = simulate(model, { eventsPerSecond, events: Math.ceil(eventsPerSecond * durationS), seed });
    return { ...result, isSustained: result.backlog <= eventsPerSecond * backlogS };
  };
  // Nothing can do more than its servers if they never wait, apart from the backlog at the end.
  let [low, high] = [0, Math.min(...capacities(model)) * (1 + backlogS / durationS) * 1.01];
  for (let step = 0; step < steps; step += 1) {
    const rate = (low + high) / 2;
    if (run(rate).isSustained) low = rate;
    else high = rate;
  }
  const [[station = ""] = []] = Object.entries(run(high).waitUs).sort(([, a], [, b]) => b - a);
  return { eventsPerSecond: low, station };
}

interface SaturationSearch {
  durationS: number;
  backlogS: number;
  seed: string;
}

/** @returns for each station, the events per second of servers that never wait */
function capacities({ stations, visits }: Model): number[] {
  return Object.entries(stations).map(([name, { servers }]) => {
    const serviceUs = visits.reduce((sum, visit) => sum + (visit.station === name ? visit.serviceUs : 0), 0);
    return (servers * 1_000_000) / serviceUs;
  });
}
