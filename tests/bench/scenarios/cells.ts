import { availableParallelism } from "node:os";
import { builtApps } from "@booking-events/harness/app-process";
import { measureApply } from "../measure-apply.ts";
import { toMedians } from "../report.ts";
import { runRounds } from "../rounds.ts";
import { newBookings } from "../sample-events.ts";
import type { Bench, Measurement, Scenario } from "../scenario.ts";
import { findSaturation, type Model, type Visit } from "../simulate.ts";
import { measureAccept } from "./accept.ts";
import { createNewBookings } from "./apply.ts";
import { connections, findSustainedRate, sustainedBacklogS, withPipeline } from "./end-to-end.ts";

const seed = "cells";
const eventsApplied = 30_000;
const eventsAppliedInSmoke = 1_500;

/** One shard or more with the workers and the PostgreSQL that apply their events. */
interface Cell {
  /** Processes. */
  ingest: number;
  /** Nodes. */
  redis: number;
  /** Processes. */
  worker: number;
  /** Cores. */
  postgres: number;
  /** How many times the measured CPU time PostgreSQL needs: more than once as its tables grow. */
  postgresFactor: number;
}

const simulatedCells: Cell[] = [
  { ingest: 2, redis: 1, worker: 2, postgres: 2, postgresFactor: 1 },
  { ingest: 4, redis: 2, worker: 4, postgres: 4, postgresFactor: 1 },
  { ingest: 4, redis: 2, worker: 4, postgres: 4, postgresFactor: 2 },
  { ingest: 4, redis: 2, worker: 4, postgres: 8, postgresFactor: 2 },
];
/** Long enough for chance to matter little, and a backlog that is small beside it. */
const simulatedSearch = { durationS: 2, backlogS: 0.02, seed };

/**
 * Measures the CPU time that each part needs for an event, and simulates events that queue for the parts of a cell. The
 * same simulation of this machine, which all parts share, is compared with what it really sustains.
 */
export const cells: Scenario = {
  name: "cells",
  about: "which part of a cell is full first, and at which rate: measured CPU times, simulated queues",
  isOnWholeMachine: true,
  async run(bench) {
    const title = "cells, all parts on this machine";
    const measured = await runRounds(bench, title, {
      accept: () => measureAccept(bench, builtApps.ingest, { connections, ...newBookings }),
      apply: () => measureApplying(bench),
      "end to end": () =>
        withPipeline(bench, async (pipeline) => ({ eventsPerSecond: await findSustainedRate(bench, pipeline) })),
    });
    const { accept = [], apply = [] } = measured;
    const simulated = accept.map((ofAccept, round) => simulateThisMachine(bench, ofAccept, apply[round] ?? {}));
    return [
      {
        title,
        measurements: { ...measured, simulated },
        comparisons: [{ figure: "eventsPerSecond", of: "end to end", to: "simulated" }],
      },
      {
        title: "cells, simulated, each part on CPUs of its own",
        measurements: Object.fromEntries(
          simulatedCells.map((cell) => simulateCell(cell, toMedians(accept), toMedians(apply))),
        ),
        comparisons: [],
      },
    ];
  },
};

function measureApplying(bench: Bench): Promise<Measurement> {
  const events = createNewBookings(bench.isSmoke ? eventsAppliedInSmoke : eventsApplied);
  return bench.services.withDatabase((database) => measureApply(bench, builtApps.worker, { database, events }));
}

/** All parts, and the load generator, share the CPUs. A rate is sustained under the same condition as end to end. */
function simulateThisMachine({ measureMs }: Bench, accept: Measurement, apply: Measurement): Measurement {
  const parts = [...visitsOf(accept, apply), { station: "load generator", serviceUs: accept.loadCpuUs ?? Number.NaN }];
  const model: Model = {
    stations: { cpus: { servers: availableParallelism() } },
    visits: parts.map(({ serviceUs }) => ({ station: "cpus", serviceUs })),
  };
  const search = { durationS: measureMs / 1_000, backlogS: sustainedBacklogS, seed };
  return { eventsPerSecond: findSaturation(model, search).eventsPerSecond };
}

function simulateCell(cell: Cell, accept: Measurement, apply: Measurement): [string, Measurement[]] {
  const { ingest, redis, worker, postgres, postgresFactor } = cell;
  const model: Model = {
    stations: {
      ingest: { servers: ingest },
      redis: { servers: redis, isSharded: true },
      worker: { servers: worker },
      postgres: { servers: postgres },
    },
    visits: visitsOf(accept, apply, postgresFactor),
  };
  const { eventsPerSecond, station } = findSaturation(model, simulatedSearch);
  const parts = `${ingest} ingests, ${redis} Redis, ${worker} workers, ${postgres} cores of PostgreSQL`;
  const growth = postgresFactor === 1 ? "" : ` that needs ${postgresFactor} × its CPU time`;
  return [`${parts}${growth}: ${station} is full first`, [{ eventsPerSecond }]];
}

/** What an event needs of each part, in order. A node of Redis takes it and hands it out, each with its own cost. */
function visitsOf(accept: Measurement, apply: Measurement, postgresFactor = 1): Visit[] {
  const visit = (station: string, serviceUs = Number.NaN): Visit => ({ station, serviceUs });
  return [
    visit("ingest", accept.cpuUs),
    visit("redis", accept.redisCpuUs),
    visit("worker", apply.cpuUs),
    visit("postgres", postgresFactor * (apply.postgresCpuUs ?? Number.NaN)),
    visit("redis", apply.redisCpuUs),
  ];
}
