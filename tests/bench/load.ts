import autocannon from "autocannon";
import { IntegrityError, type Measurement } from "./scenario.ts";

export interface Load {
  url: string;
  body: string;
  contentType: string;
  connections: number;
  durationMs: number;
  /** Requests a second over all connections; undefined: as many as it takes. */
  rate?: number | undefined;
  /** Answers that are no failure; 200 by default. */
  expected?: readonly number[];
  /** Each `[<id>]` in the body is another text in each request. */
  hasIds?: boolean;
  /** In a thread of its own, so that it is not in the way of another load. */
  isAside?: boolean;
}

export interface LoadResult extends Pick<Measurement, "eventsPerSecond" | "p50Ms" | "p99Ms"> {
  answered: number;
  /** How often each status came. */
  statuses: ReadonlyMap<number, number>;
}

/**
 * Posts the same request, or one that differs in its ids, over and over.
 *
 * @throws IntegrityError when any of them failed
 */
export async function applyLoad(load: Load): Promise<LoadResult> {
  const { expected = [200] } = load;
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
  const counts = Object.entries(result.statusCodeStats ?? {});
  const wrong = counts.filter(([status]) => !expected.includes(Number(status)));
  if (wrong.length > 0 || result.errors > 0 || result.timeouts > 0) {
    throw new IntegrityError(
      `Requests failed: ${result.errors} errors, ${result.timeouts} time-outs, ${wrong.map(([status, { count }]) => `${count} × ${status}`).join(", ")}.`,
    );
  }
  return {
    answered: result["2xx"] + result.non2xx,
    statuses: new Map(counts.map(([status, { count = 0 }]) => [Number(status), count])),
    eventsPerSecond: result.requests.average,
    p50Ms: result.latency.p50,
    p99Ms: result.latency.p99,
  };
}
