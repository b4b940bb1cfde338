import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pinThisProcess, planCpus } from "./cpus.ts";
import { startDataServices } from "./data-services.ts";
import { describeMachine } from "./machine.ts";
import { createReport, type Report } from "./report.ts";
import type { Bench, Scenario, Section } from "./scenario.ts";

export interface RunOptions extends Omit<Bench, "services" | "cpus" | "dir"> {
  scenarios: readonly Scenario[];
}

/** @throws IntegrityError when something that was measured did not do its work */
export async function runBench({ scenarios, ...options }: RunOptions): Promise<Report> {
  const sections: Section[] = [];
  let machine = "";
  for (const scenario of scenarios) {
    await withServices(scenario, options, async (bench) => {
      machine = await describeMachine(bench.services, planCpus());
      sections.push(...(await scenario.run(bench)));
    });
  }
  return createReport(machine, options.rounds, sections);
}

/** Each scenario gets new data services: no data of others, and the CPUs that it asks for. */
async function withServices(
  { isOnWholeMachine, postgresSettings = {} }: Scenario,
  options: Omit<RunOptions, "scenarios">,
  run: (bench: Bench) => Promise<void>,
): Promise<void> {
  const cpus = planCpus(isOnWholeMachine);
  pinThisProcess(cpus.others);
  const dir = await mkdtemp(join(tmpdir(), "booking-events-bench-"));
  try {
    const services = await startDataServices(dir, { postgresSettings, signal: options.signal });
    try {
      await run({ ...options, services, cpus, dir });
    } finally {
      await services.stop();
    }
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}
