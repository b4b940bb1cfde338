import { builtApps } from "@booking-events/harness/app-process";
import { newQueuePrefix, startContestant, writePartners } from "../contestant.ts";
import { applyLoad } from "../load.ts";
import { attackAside } from "../pipelining-attack.ts";
import { runRounds } from "../rounds.ts";
import { bodies } from "../sample-events.ts";
import type { Bench, Measurement, Scenario } from "../scenario.ts";

const rate = 100;

export const pipelining: Scenario = {
  name: "pipelining",
  about: "a partner's p99 while strangers send thousands of requests in one piece",
  async run(bench) {
    const title = `${rate} events/s of one partner, while 200 connections send 256 KiB of GET /x each, and come again`;
    const measurements = await runRounds(bench, title, {
      alone: () => measure(bench),
      "they read the answers": () => measure(bench, { isReading: true }),
      "they never read": () => measure(bench, { isReading: false }),
    });
    const attacks = ["they read the answers", "they never read"] as const;
    return [
      {
        title,
        measurements,
        comparisons: attacks.flatMap((of) => [
          { figure: "eventsPerSecond" as const, of, to: "alone", atLeast: 0.9 },
          { figure: "p99Ms" as const, of, to: "alone" },
          { figure: "loopDelayP99Ms" as const, of, to: "alone" },
        ]),
      },
    ];
  },
};

async function measure(bench: Bench, attack?: { isReading: boolean }): Promise<Measurement> {
  const { services, measureMs, warmUpMs } = bench;
  const { file, secretOf } = writePartners(bench, { partner: { perSecond: 10 * rate, burst: 10 * rate } });
  const contestant = await startContestant(bench, builtApps.ingest, {
    ...{ REDIS_URL: services.redisUrl, QUEUE_PREFIX: newQueuePrefix(), PARTNERS_FILE: file },
  });
  const url = `${contestant.url}/booking-event/create/${secretOf["partner"]}`;
  const load = { url, ...bodies.JSON, connections: 10, rate };
  try {
    await applyLoad({ ...load, durationMs: warmUpMs });
    await contestant.loopDelayP99Ms();
    const [{ p50Ms, p99Ms, eventsPerSecond }, attacksPerSecond] = await Promise.all([
      applyLoad({ ...load, durationMs: measureMs }),
      attack && attackAside({ ...attack, port: Number(new URL(contestant.url).port), durationMs: measureMs }),
    ]);
    return { eventsPerSecond, p50Ms, p99Ms, loopDelayP99Ms: await contestant.loopDelayP99Ms(), attacksPerSecond };
  } finally {
    await contestant.stop();
    await services.emptyRedis();
  }
}
