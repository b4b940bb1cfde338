import autocannon from "autocannon";
import { IntegrityError } from "./scenario.ts";

export interface Load {
  url: string;
  body: string;
  contentType: string;
  connections: number;
  durationMs: number;
  /** Requests a second over all connections; undefined: as many as possible. */
  rate?: number | undefined;
  /** Each `[<id>]` in the body is another text in each request. */
  hasIds?: boolean;
  /** The load comes from a thread of its own, to leave this one free. */
  isAside?: boolean;
}

export interface LoadResult {
  answered: number;
  eventsPerSecond: number;
  p50Ms: number;
  p99Ms: number;
  /** CPU time of this process for one request. */
  loadCpuUs: number;
}

/**
 * Posts the same request, or one that differs in its ids, over and over.
 *
 * @throws IntegrityError when any answer is not 200
 */
export async function applyLoad(load: Load): Promise<LoadResult> {
  const cpuBefore = process.cpuUsage();
  const result = await autocannon({
    url: load.url,
    method: "POST",
    headers: { "content-type": load.contentType },
    body: load.body,
    connections: load.connections,
    duration: load.durationMs / 1_000,
    timeout: 10,
    ...(load.hasIds ? { idReplacement: true } : {}),
    ...(load.isAside ? { workers: 1 } : {}),
    ...(load.rate === undefined ? {} : { overallRate: load.rate }),
  });
  const cpu = process.cpuUsage(cpuBefore);
  const { errors, timeouts, statusCodeStats = {} } = result;
  const answers = Object.entries(statusCodeStats).map(([status, { count }]) => `${count} × ${status}`);
  if (errors > 0 || timeouts > 0 || Object.keys(statusCodeStats).some((status) => status !== "200")) {
    throw new IntegrityError(`Requests failed: ${errors} errors, ${timeouts} time-outs, ${answers.join(", ")}.`);
  }
  return {
    answered: result["2xx"],
    eventsPerSecond: result.requests.average,
    p50Ms: result.latency.p50,
    p99Ms: result.latency.p99,
    loadCpuUs: (cpu.user + cpu.system) / result["2xx"],
  };
}
