import { builtApps } from "@booking-events/harness/app-process";
import { applyLoad } from "../load.ts";
import { postBatch } from "../post-batch.ts";
import { newQueuePrefix, startIngest } from "../process-under-test.ts";
import { runRounds } from "../rounds.ts";
import { newBookings } from "../sample-events.ts";
import type { Bench, Measurement, Scenario } from "../scenario.ts";

const connections = 32;
/** Of another partner, in requests a second: far from what ingest can do, and enough for a percentile. */
const steady = { connections: 8, rate: 200 };

export const batch: Scenario = {
  name: "batch",
  about: "a batch beside single events: how fast it is, and what another partner notices of it",
  async run(bench) {
    return [
      {
        title: "events accepted by one ingest",
        measurements: await runRounds(bench, "throughput", {
          single: () => withIngest(bench, (urls) => measureSingles(bench, urls)),
          batch: () => withIngest(bench, ({ batchUrl }) => postBatch(batchUrl, bench.measureMs)),
        }),
        comparisons: [{ figure: "eventsPerSecond", of: "batch", to: "single" }],
      },
      {
        title: `another partner's ${steady.rate} events a second`,
        measurements: await runRounds(bench, "another partner", {
          alone: () => withIngest(bench, (urls) => measureOther(bench, urls)),
          "beside a batch": () => withIngest(bench, (urls) => measureOther(bench, urls, postBatch)),
        }),
        comparisons: [
          { figure: "p50Ms", of: "beside a batch", to: "alone" },
          { figure: "p99Ms", of: "beside a batch", to: "alone" },
        ],
      },
    ];
  },
};

interface Urls {
  url: string;
  otherUrl: string;
  batchUrl: string;
}

async function measureSingles({ measureMs }: Bench, { url }: Urls): Promise<Measurement> {
  const { eventsPerSecond } = await applyLoad({ url, ...newBookings, connections, durationMs: measureMs });
  return { eventsPerSecond };
}

async function measureOther(
  { measureMs }: Bench,
  { otherUrl, batchUrl }: Urls,
  beside: typeof postBatch | undefined = undefined,
): Promise<Measurement> {
  const load = { ...newBookings, ...steady, url: otherUrl, durationMs: measureMs, isAside: true };
  const [{ p50Ms, p99Ms }] = await Promise.all([applyLoad(load), beside?.(batchUrl, measureMs)]);
  return { p50Ms, p99Ms };
}

async function withIngest(bench: Bench, measure: (urls: Urls) => Promise<Measurement>): Promise<Measurement> {
  const ingest = await startIngest(bench, builtApps.ingest, newQueuePrefix());
  try {
    const urls = {
      url: ingest.createUrl,
      otherUrl: ingest.otherCreateUrl,
      batchUrl: ingest.createUrl.replace("/create/", "/batch/"),
    };
    await applyLoad({ url: urls.url, ...newBookings, connections, durationMs: bench.warmUpMs });
    return await measure(urls);
  } finally {
    await ingest.stop();
    await bench.services.emptyRedis();
  }
}
