import { cpus, platform, release, totalmem } from "node:os";
import type { CpuPlan } from "./cpus.ts";
import type { DataServices } from "./data-services.ts";

/** What the numbers of a run belong to. */
export interface Machine {
  cpu: string;
  cores: number;
  memoryGiB: number;
  system: string;
  node: string;
  redis: string;
  postgres: string;
  cpusUnderTest: string;
  cpusOfOthers: string;
}

export async function describeMachine(services: DataServices, plan: CpuPlan): Promise<Machine> {
  return {
    cpu: cpus()[0]?.model.trim() ?? "unknown",
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    system: `${platform()} ${release()}`,
    node: process.version,
    ...(await services.versions()),
    cpusUnderTest: plan.underTest ?? "any",
    cpusOfOthers: plan.others ?? "any",
  };
}

export function formatMachine(machine: Machine): string {
  const { cpu, cores, memoryGiB, system, node, redis, postgres, cpusUnderTest, cpusOfOthers } = machine;
  return (
    `${cpu}, ${cores} cores, ${memoryGiB} GiB, ${system}; Node ${node}, Redis ${redis}, PostgreSQL ${postgres}. ` +
    `Unless a title says otherwise, the process under test runs on CPU ${cpusUnderTest}, all others on ${cpusOfOthers}.`
  );
}
