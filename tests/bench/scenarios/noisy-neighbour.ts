import { builtApps } from "@booking-events/harness/app-process";
import { newQueuePrefix, startContestant, writePartners } from "../contestant.ts";
import { applyLoad } from "../load.ts";
import { runRounds } from "../rounds.ts";
import { bodies } from "../sample-events.ts";
import type { Bench, Measurement, Scenario } from "../scenario.ts";

const quietRate = 100;
const noisyLimit = { perSecond: 20, burst: 20 };
const timesItsLimit = 100;

export const noisyNeighbour: Scenario = {
  name: "noisy-neighbour",
  about: "a partner's p99 while another sends a hundred times its limit",
  async run(bench) {
    const title = `${quietRate} events/s of one partner, while another sends ${timesItsLimit} times its limit of ${noisyLimit.perSecond}/s`;
    const measurements = await runRounds(bench, title, {
      alone: () => measure(bench, { isNoisy: false }),
      "with the other": () => measure(bench, { isNoisy: true }),
    });
    return [
      { title, measurements, comparisons: [{ figure: "p99Ms", of: "with the other", to: "alone", atLeast: 0.5 }] },
    ];
  },
};

async function measure(bench: Bench, { isNoisy }: { isNoisy: boolean }): Promise<Measurement> {
  const { services, measureMs, warmUpMs } = bench;
  const { file, secretOf } = writePartners(bench, {
    quiet: { perSecond: 10 * quietRate, burst: 10 * quietRate },
    noisy: noisyLimit,
  });
  const contestant = await startContestant(bench, builtApps.ingest, {
    ...{ REDIS_URL: services.redisUrl, QUEUE_PREFIX: newQueuePrefix(), PARTNERS_FILE: file },
  });
  const load = (partner: string) => ({
    ...{ url: `${contestant.url}/booking-event/create/${secretOf[partner]}`, ...bodies.JSON, connections: 10 },
  });
  try {
    await applyLoad({ ...load("quiet"), rate: quietRate, durationMs: warmUpMs });
    const [quiet, noisy] = await Promise.all([
      applyLoad({ ...load("quiet"), rate: quietRate, durationMs: measureMs }),
      isNoisy &&
        applyLoad({
          ...{ ...load("noisy"), rate: timesItsLimit * noisyLimit.perSecond, durationMs: measureMs },
          ...{ expected: [200, 429], isAside: true },
        }),
    ]);
    const { p50Ms, p99Ms, eventsPerSecond } = quiet;
    const refusedShare = noisy ? (noisy.statuses.get(429) ?? 0) / noisy.answered : undefined;
    return { eventsPerSecond, p50Ms, p99Ms, refusedShare };
  } finally {
    await contestant.stop();
    await services.emptyRedis();
  }
}
