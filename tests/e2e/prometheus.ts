import { execFileSync } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type LocalServer, startServer } from "@booking-events/scripts/local-server";
import { stringify } from "yaml";
import type { RuleGroup } from "./alert-rules.ts";

export interface Prometheus extends LocalServer {
  /** @returns the series that a query has now, or in the last minute as a range */
  query(expression: string): Promise<Sample[]>;
  /** Each firing alert once, as "Name severity" and labels such as "partner=acme". */
  firing(): Promise<string[]>;
}

interface Sample {
  metric: Record<string, string>;
  value: number;
}

/** Text of OpenMetrics with times, to be there before Prometheus starts. */
export type Backfill = string;

/**
 * Starts a Prometheus that scrapes processes of the test.
 *
 * @param options.jobs the ports of the processes, by job. They are read again every five seconds
 * @param options.interval of scrapes and of evaluations, such as "250ms"
 */
export async function startPrometheus(options: {
  dir: string;
  jobs: Record<string, number[]>;
  interval: string;
  groups: RuleGroup[];
  backfill?: Backfill;
}): Promise<Prometheus> {
  const { dir, jobs, interval, groups, backfill } = options;
  const data = join(dir, "data");
  await mkdir(data, { recursive: true });
  await writeFile(join(dir, "rules.yml"), stringify({ groups }));
  await writeFile(
    join(dir, "prometheus.yml"),
    stringify({
      global: { scrape_interval: interval, scrape_timeout: interval, evaluation_interval: interval },
      rule_files: ["rules.yml"],
      scrape_configs: Object.entries(jobs).map(([job_name, ports]) => ({
        job_name,
        static_configs: [{ targets: ports.map((port) => `127.0.0.1:${port}`) }],
      })),
    }),
  );
  if (backfill !== undefined) {
    await writeFile(join(dir, "backfill.txt"), `${backfill}# EOF\n`);
    execFileSync("promtool", ["tsdb", "create-blocks-from", "openmetrics", join(dir, "backfill.txt"), data]);
  }
  const url = (port: number) => `http://127.0.0.1:${port}`;
  const server = await startServer({
    name: "Prometheus",
    dir,
    logPath: join(dir, "prometheus.log"),
    stopSignal: "SIGTERM",
    command: (port) => ({
      file: "prometheus",
      args: [
        `--config.file=${join(dir, "prometheus.yml")}`,
        `--storage.tsdb.path=${data}`,
        `--web.listen-address=127.0.0.1:${port}`,
      ],
    }),
    ping: async (port) => {
      const { ok, status } = await fetch(`${url(port)}/-/ready`);
      if (!ok) throw new Error(`/-/ready answers ${status}`);
    },
    url,
  });

  async function query(expression: string): Promise<Sample[]> {
    const response = await fetch(`${server.url}/api/v1/query`, {
      method: "POST",
      body: new URLSearchParams({ query: expression }),
    });
    const { error, data } = (await response.json()) as {
      error?: string;
      data: { result: { metric: Record<string, string>; value: [number, string] }[] };
    };
    if (error !== undefined) throw new Error(`${error}: ${expression}`);
    return data.result.map(({ metric, value }) => ({ metric, value: Number(value[1]) }));
  }

  return Object.assign(server, {
    query,
    async firing() {
      const samples = await query('ALERTS{alertstate="firing"}');
      return samples
        .map(({ metric: { alertname, severity, __name__, alertstate, instance, job, ...labels } }) =>
          [alertname, severity, ...Object.entries(labels).map(([name, value]) => `${name}=${value}`)].join(" "),
        )
        .toSorted();
    },
  });
}
