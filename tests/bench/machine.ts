import { cpus, platform, release, totalmem } from "node:os";
import type { CpuPlan } from "./cpus.ts";
import type { DataServices } from "./data-services.ts";

/** @returns what the figures of a run depend on, as sentences */
export async function describeMachine({ redis, postgres }: DataServices, plan: CpuPlan): Promise<string> {
  const [, redisVersion] = /redis_version:(\S+)/.exec(await redis.info("server")) ?? [];
  const { rows } = await postgres.query<{ server_version: string }>("show server_version");
  const hardware = `${cpus()[0]?.model.trim()}, ${cpus().length} cores, ${Math.round(totalmem() / 2 ** 30)} GiB`;
  const software = `Node ${process.version}, Redis ${redisVersion}, PostgreSQL ${rows[0]?.server_version}`;
  return (
    `${hardware}, ${platform()} ${release()}; ${software}. Unless a title says otherwise, the process under test runs ` +
    `on CPU ${plan.underTest ?? "any"}, all others on ${plan.others ?? "any"}.`
  );
}
