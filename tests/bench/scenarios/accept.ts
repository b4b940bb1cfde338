import { builtApps } from "@booking-events/harness/app-process";
import { baseline } from "../contestant.ts";
import { measureAccept } from "../measure-accept.ts";
import { runRounds } from "../rounds.ts";
import type { Bench, Comparison, Scenario, Section } from "../scenario.ts";
import { spreadOf } from "../statistics.ts";

const contestants = {
  ours: { program: builtApps.ingest, queues: true },
  stack: { program: baseline("stack"), queues: false },
  textbook: { program: baseline("textbook"), queues: true },
  fastify: { program: baseline("fastify"), queues: true },
  bare: { program: baseline("bare"), queues: false },
} as const;
type Name = keyof typeof contestants;

const targets: [of: Name, atLeast: number][] = [
  ["stack", 0.85],
  ["textbook", 1.4],
  ["fastify", 1],
  ["bare", 0.25],
];

export const accept: Scenario = {
  name: "accept",
  about: "events accepted by one ingest process, beside four baselines",
  async run(bench) {
    const sections: Section[] = [];
    const loads = bench.isSmoke
      ? [[8, "JSON"] as const]
      : ([
          [64, "JSON"],
          [512, "JSON"],
          [64, "form"],
        ] as const);
    for (const [connections, type] of loads) {
      const title = `accept, ${connections} connections, ${type}`;
      const run = (name: Name) => () => measureAccept(bench, { ...contestants[name], connections, type });
      const measurements = await runRounds(bench, title, {
        ours: run("ours"),
        stack: run("stack"),
        textbook: run("textbook"),
        fastify: run("fastify"),
        bare: run("bare"),
      });
      const comparisons = targets.flatMap(([to, atLeast]): Comparison[] => [
        { figure: "eventsPerSecond", of: "ours", to, atLeast },
        { figure: "cpuUs", of: "ours", to, atLeast },
      ]);
      sections.push({ title, measurements, comparisons });
    }
    sections.push(await atHalfLoad(bench, sections[0]));
    return sections;
  },
};

/** Half of what the textbook sustains: a load at which nobody is at the limit. */
async function atHalfLoad(bench: Bench, full: Section | undefined): Promise<Section> {
  const sustained = full?.measurements["textbook"]?.map(({ eventsPerSecond = 0 }) => eventsPerSecond) ?? [];
  const rate = Math.round(spreadOf(sustained).median / 2);
  const title = `accept, ${rate} events/s over 64 connections, JSON`;
  const run = (name: Name) => () => measureAccept(bench, { ...contestants[name], connections: 64, type: "JSON", rate });
  const measurements = await runRounds(bench, title, {
    ours: run("ours"),
    textbook: run("textbook"),
    fastify: run("fastify"),
  });
  return {
    title,
    measurements,
    comparisons: [
      { figure: "p99Ms", of: "ours", to: "textbook", atLeast: 1 },
      { figure: "p50Ms", of: "ours", to: "textbook" },
    ],
  };
}
