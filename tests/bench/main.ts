import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { builtApps } from "@booking-events/harness/app-process";
import { version } from "@booking-events/runtime";
import { build } from "@booking-events/scripts/build";
import { findOrInstallRedis } from "@booking-events/scripts/services";
import { stopRequested } from "@booking-events/scripts/stop-signals";
import { printReport } from "./report.ts";
import { runBench } from "./run-bench.ts";
import { scenarios } from "./scenarios/index.ts";

const help = `Measures the built processes beside baselines, in turn, on this machine.

  npm run bench -- [name …] [--seconds N] [--rounds N] [--beside DIR] [--json FILE] [--profile DIR] [--smoke]

Names (default: all):
${scenarios.map(({ name, about }) => `  ${name.padEnd(16)} ${about}`).join("\n")}

  --seconds N    how long each measurement lasts. Default: 5
  --rounds N     how often each variant is measured, in turn with the others. Default: 5
  --beside DIR   another clone, such as of the commit before, that has been built: \`accept\` and \`apply\` measure
                 its apps too
  --json FILE    where to write everything that was measured
  --profile DIR  where each process under test writes a CPU profile
  --smoke        only checks that the scenarios run

Exit code: 0 when everything ran and kept its integrity, whatever the figures; 1 when not.
`;

/** After 2 s, ingest still executes 1.4 times as many instructions for an event as after 10 s. */
const minWarmUpMs = 10_000;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: "string", default: "5" },
    rounds: { type: "string", default: "5" },
    beside: { type: "string" },
    json: { type: "string" },
    profile: { type: "string" },
    smoke: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
    version: { type: "boolean", default: false },
  },
});

const say = (line: string) => void process.stdout.write(`${line}\n`);
if (values.help) say(help);
else if (values.version) say(version);
else await main();

async function main(): Promise<void> {
  const unknown = positionals.find((wanted) => !scenarios.some(({ name }) => name === wanted));
  if (unknown !== undefined) throw new Error(`There is no scenario ${unknown}. See npm run bench -- --help`);
  const otherClone = values.beside === undefined ? undefined : requireBuilt(resolve(values.beside));
  const signal = stopRequested({ force: () => process.exit(130) });
  await findOrInstallRedis({ say, signal });
  await build(signal);
  const measureMs = Number(values.seconds) * 1_000;
  const report = await runBench({
    scenarios: scenarios.filter(({ name }) => positionals.length === 0 || positionals.includes(name)),
    ...(values.smoke
      ? { rounds: 1, measureMs: 1_000, warmUpMs: 1_000, isSmoke: true }
      : { rounds: Number(values.rounds), measureMs, warmUpMs: Math.max(minWarmUpMs, measureMs), isSmoke: false }),
    profileDir: values.profile,
    otherClone,
    say,
    signal,
  });
  if (values.json !== undefined) await writeFile(values.json, `${JSON.stringify(report, null, 2)}\n`);
  printReport(report);
}

function requireBuilt(clone: string): string {
  const missing = [...builtApps.ingest, ...builtApps.worker].find((path) => !existsSync(join(clone, path)));
  if (missing !== undefined) throw new Error(`${clone} has no ${missing}. Run npm run build there.`);
  return clone;
}
