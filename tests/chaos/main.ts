import { randomInt } from "node:crypto";
import { parseArgs } from "node:util";
import { findCaddy } from "@booking-events/harness/start-caddy";
import { version } from "@booking-events/runtime";
import { build } from "@booking-events/scripts/build";
import { findOrInstallRedis } from "@booking-events/scripts/services";
import { SetupProblem } from "@booking-events/scripts/setup-problem";
import { stopRequested } from "@booking-events/scripts/stop-signals";
import { runBadNeighbour } from "./bad-neighbour.ts";
import { brokenBuilds, realBuild } from "./builds.ts";
import { planFaults } from "./fault-plan.ts";
import { formatNeighbourReport } from "./neighbour-report.ts";
import { createRandom } from "./random.ts";
import { formatChaosReport, type Report, writeReport } from "./report.ts";
import { runChaos } from "./run-chaos.ts";
import type { RunOptions } from "./run-on-system.ts";

const help = `Starts the whole service, posts random histories, kills and freezes random processes,
Redis and PostgreSQL included, sets their clocks wrong, lets PostgreSQL's certificate expire,
and checks from outside that nothing is lost, and that subscribers get everything.

  npm run chaos -- [--redis cluster|sentinel] [--postgres standby]
                   [--minutes N] [--seed S] [--rate R] [--report FILE]
  npm run chaos -- --scenario bad-neighbour [--minutes N] [--rate R] [--report FILE]

  --scenario bad-neighbour
                 kills nothing, but lets some partners and strangers do their worst, behind
                 deploy/Caddyfile if there is Caddy, and checks that this harms nobody else
  --minutes N    how long to post; then the queue is drained. Default: 2, in the scenario 1
  --seed S       a whole number; the same seed gives the same posts and the same faults.
                 Default: a new one
  --rate R       events per second. Default: 100; in the scenario, of the partner with the worst
                 payloads and of the one with a hot booking, 200 each
  --report FILE  where to write the report. Default: .data/chaos-report.json
  --redis cluster
                 three primaries with two replicas each, instead of one Redis
  --redis sentinel
                 a primary, two replicas and three Sentinels
  --postgres standby
                 a primary and a synchronous standby, instead of one PostgreSQL. Of servers with
                 replicas, machines die and freeze, and links between them are cut
  --replicas-to-confirm N
                 how many replicas of Redis must have an event before it is accepted. Default: 1
  --broken NAME  runs a build with a deliberate mistake instead, which must fail, with
                 its own plan of faults: ${brokenBuilds.map(({ name }) => name).join(",\n                 ")}

Exit code: 0 when every promise was kept, 1 when not, 2 when it could not run.
`;

const options = {
  scenario: { type: "string" },
  minutes: { type: "string" },
  seed: { type: "string", default: String(randomInt(2 ** 31)) },
  rate: { type: "string" },
  report: { type: "string", default: ".data/chaos-report.json" },
  redis: { type: "string" },
  postgres: { type: "string" },
  "replicas-to-confirm": { type: "string", default: "1" },
  broken: { type: "string" },
  help: { type: "boolean", default: false },
  version: { type: "boolean", default: false },
} as const;

const quietMs = 15_000;
const minuteMs = 60_000;

const say = (line: string) => void process.stdout.write(`${line}\n`);

try {
  process.exitCode = await main();
} catch (error) {
  const advice = error instanceof SetupProblem ? `\n${error.advice}` : "";
  process.stderr.write(`${error instanceof Error ? error.message : error}${advice}\n`);
  // What the run has begun may wait for servers that are gone.
  process.exit(2);
}

async function main(): Promise<number> {
  const { values } = parseArgs({ options });
  if (values.help || values.version) {
    say(values.help ? help : version);
    return 0;
  }
  const [report, text] = values.scenario === undefined ? await killAndFreeze(values) : await runScenario(values);
  await writeReport(report, values.report);
  say(text);
  say(`Report: ${values.report}`);
  return report.passed ? 0 : 1;
}

type Values = ReturnType<typeof parseArgs<{ options: typeof options }>>["values"];

async function killAndFreeze(values: Values): Promise<[Report, string]> {
  const seed = readNumber("seed", values.seed);
  const broken = brokenBuilds.find(({ name }) => name === values.broken);
  if (values.broken !== undefined && broken === undefined)
    throw new Error(`There is no broken build ${values.broken}.`);
  const postMs = broken?.postMs ?? readNumber("minutes", values.minutes ?? "2") * minuteMs;
  const faults = broken?.faults ?? planFaults(createRandom(seed, "faults"), postMs);
  const ratePerSecond = readNumber("rate", values.rate ?? "100");
  const replicas = {
    redis: readChoice("redis", values.redis, ["cluster", "sentinel"] as const),
    postgres: readChoice("postgres", values.postgres, ["standby"] as const),
    replicasToConfirm: Number(values["replicas-to-confirm"]),
  };
  say(`Seed ${seed}.`);
  const run = await prepare();
  const report = await runChaos({
    ...run,
    ...replicas,
    build: broken ?? realBuild,
    seed,
    postMs,
    faults,
    ratePerSecond,
  });
  return [report, formatChaosReport(report)];
}

async function runScenario(values: Values): Promise<[Report, string]> {
  if (values.scenario !== "bad-neighbour") throw new Error(`There is no scenario ${values.scenario}.`);
  const loudMs = readNumber("minutes", values.minutes ?? "1") * minuteMs;
  const rate = values.rate === undefined ? {} : { neighbourPerSecond: readNumber("rate", values.rate) };
  const run = await prepare();
  const proxyProgram = await findCaddy(say);
  const report = await runBadNeighbour({ ...run, build: realBuild, proxyProgram, quietMs, loudMs, ...rate });
  return [report, formatNeighbourReport(report)];
}

/** @returns what all runs have in common; the signal stops everything */
async function prepare(): Promise<Pick<RunOptions, "keepsEvidence" | "say" | "signal">> {
  const signal = stopRequested({ force: () => process.exit(130) });
  say("Ctrl-C stops everything.");
  await findOrInstallRedis({ say, signal });
  await build(signal);
  return { keepsEvidence: true, say, signal };
}

function readChoice<Choice extends string>(
  name: string,
  text: string | undefined,
  choices: readonly Choice[],
): Choice | undefined {
  const choice = choices.find((one) => one === text);
  if (text !== undefined && choice === undefined) throw new Error(`--${name} must be one of: ${choices.join(", ")}.`);
  return choice;
}

function readNumber(name: string, text: string): number {
  const number = Number(text);
  if (!Number.isFinite(number) || number <= 0) throw new Error(`--${name} must be a number above 0.`);
  return number;
}
