import { builtApps } from "@booking-events/harness/app-process";
import { newQueuePrefix } from "../contestant.ts";
import { createEnvelope, fillQueue } from "../fill-queue.ts";
import { measureApply, ourConcurrency } from "../measure-apply.ts";
import { runRounds } from "../rounds.ts";
import { fullBooking } from "../sample-events.ts";
import { type Bench, IntegrityError, type Measurement, type Scenario } from "../scenario.ts";

const eventsMeasured = 40_000;

export const workers: Scenario = {
  name: "workers",
  about: "events applied by one, two and four worker processes",
  isOnWholeMachine: true,
  async run(bench) {
    const title = "apply, new bookings, by several workers, all processes on all CPUs";
    const measurements = await runRounds(bench, title, {
      "1 worker": () => measure(bench, 1),
      "2 workers": () => measure(bench, 2),
      "4 workers": () => measure(bench, 4),
    });
    return [
      {
        title,
        measurements,
        comparisons: [
          { figure: "eventsPerSecond", of: "2 workers", to: "1 worker" },
          { figure: "eventsPerSecond", of: "4 workers", to: "1 worker" },
        ],
      },
    ];
  },
};

async function measure(bench: Bench, processes: number): Promise<Measurement> {
  const { services } = bench;
  const queuePrefix = newQueuePrefix();
  const database = await services.createDatabase();
  const count = bench.isSmoke ? 4_000 : eventsMeasured;
  const events = Array.from({ length: count }, (_, index) =>
    createEnvelope(index, { kind: "create", reference: `TRIP-${index}`, payload: fullBooking }),
  );
  try {
    await fillQueue(services.redisUrl, queuePrefix, events);
    const measurement = await measureApply(bench, {
      ...{ program: builtApps.worker, concurrency: ourConcurrency, processes, queuePrefix, database, count },
    });
    const [found] = await database.query<{ count: number }>("select count(*)::int as count from bookings");
    if (found?.count !== count) throw new IntegrityError(`PostgreSQL has ${found?.count} of ${count} bookings.`);
    return measurement;
  } finally {
    await database.drop();
    await services.emptyRedis();
  }
}
