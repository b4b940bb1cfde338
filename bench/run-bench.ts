import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pinThisProcess, planCpus } from "./cpus.ts";
import { startDataServices } from "./data-services.ts";
import { describeMachine } from "./machine.ts";
import { createReport, type Report } from "./report.ts";
import type { Bench, Scenario, Section } from "./scenario.ts";

export interface RunOptions
  extends Pick<Bench, "rounds" | "measureMs" | "warmUpMs" | "isSmoke" | "profileDir" | "say" | "signal"> {
  scenarios: readonly Scenario[];
}

/** @throws IntegrityError when something that was measured did not do its work */
export async function runBench({ scenarios, ...options }: RunOptions): Promise<Report> {
  const cpus = planCpus();
  pinThisProcess(cpus.others);
  const dir = await mkdtemp(join(tmpdir(), "booking-events-bench-"));
  const services = await startDataServices(dir, options.signal);
  try {
    const bench: Bench = { ...options, services, cpus, dir };
    const sections: Section[] = [];
    for (const scenario of scenarios) sections.push(...(await scenario.run(bench)));
    return createReport(await describeMachine(services, cpus), options.rounds, sections);
  } finally {
    await services.stop();
    await rm(dir, { recursive: true, force: true });
  }
}
