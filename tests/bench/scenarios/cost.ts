import { createEventAdder, serializeEvent } from "@booking-events/queue/add-events";
import { sequenceKey, takeSequenceInLua } from "@booking-events/queue/sequence";
import { migrate } from "@booking-events/store";
import { baseline, newQueuePrefix } from "../contestant.ts";
import { cpuTimeUs } from "../cpu-time.ts";
import { createEnvelope, fillQueue } from "../fill-queue.ts";
import { measureAccept } from "../measure-accept.ts";
import { measureApply, ourConcurrency } from "../measure-apply.ts";
import { runRounds } from "../rounds.ts";
import { fullBooking } from "../sample-events.ts";
import { type Bench, IntegrityError, type Measurement, type Scenario, type Section } from "../scenario.ts";

const eventsMeasured = 20_000;
const callsAtOnce = 64;
const sample = { kind: "create", reference: "TRIP-1", payload: fullBooking } as const;

/** Tables that are not needed to know the bookings. */
const tables = ["booking_events", "booking_changes"] as const;

export const cost: Scenario = {
  name: "cost",
  about: "what each guarantee costs: fsync, limits, the order, the event log, the feed of changes",
  async run(bench) {
    return [await costOfAccepting(bench), await costOfNumbering(bench), await costOfApplying(bench)];
  },
};

async function costOfAccepting(bench: Bench): Promise<Section> {
  const title = "cost, accepting over 64 connections, JSON";
  const run = (without: string) => () =>
    measureAccept(bench, {
      ...{ program: baseline("ingest-without"), queues: true, connections: 64, type: "JSON" },
      environment: { WITHOUT: without },
    });
  const { redis } = bench.services;
  const measurements = await runRounds(bench, title, {
    "all of it": run("nothing"),
    "without limits": run("limits"),
    "appendfsync everysec": async () => {
      await redis.config("SET", "appendfsync", "everysec");
      return run("fsync")().finally(() => redis.config("SET", "appendfsync", "always"));
    },
  });
  return {
    title,
    measurements,
    comparisons: ["without limits", "appendfsync everysec"].flatMap((to) => [
      { figure: "eventsPerSecond", of: "all of it", to },
      { figure: "p50Ms", of: "all of it", to },
      { figure: "cpuUs", of: "all of it", to },
    ]),
  };
}

/** In Redis, which numbers the events; ingest does nothing for it. */
async function costOfNumbering(bench: Bench): Promise<Section> {
  const title = "cost, the order of events, for one that is added alone";
  const { redis } = bench.services;
  const prefix = newQueuePrefix();
  const addEvents = createEventAdder(redis, prefix);
  const numberAlone = `
    ${takeSequenceInLua}
    local time = redis.call('TIME')
    return takeSequence(KEYS[1], time[1] * 1000000 + time[2], time[1] * 1000, 1)`;
  let index = 0;
  const measurements = await runRounds(bench, title, {
    "added to the queue": () =>
      callRedis(bench, () => {
        const { version: _, sequence: __, ...event } = createEnvelope(index++, sample);
        return addEvents([serializeEvent(event)], Number.MAX_SAFE_INTEGER / 1_000_000);
      }),
    "only numbered": () => callRedis(bench, () => redis.eval(numberAlone, 1, sequenceKey(prefix))),
  });
  await bench.services.emptyRedis();
  return {
    title,
    measurements,
    comparisons: [{ figure: "redisCpuUs", of: "only numbered", to: "added to the queue" }],
  };
}

async function callRedis({ services, measureMs }: Bench, call: () => Promise<unknown>): Promise<Measurement> {
  const [startedAtMs, before] = [performance.now(), cpuTimeUs(services.redisPid)];
  let calls = 0;
  while (performance.now() - startedAtMs < measureMs) {
    await Promise.all(Array.from({ length: callsAtOnce }, call));
    calls += callsAtOnce;
  }
  const after = cpuTimeUs(services.redisPid);
  return {
    eventsPerSecond: (calls * 1_000) / (performance.now() - startedAtMs),
    redisCpuUs: before === undefined || after === undefined ? undefined : (after - before) / calls,
  };
}

async function costOfApplying(bench: Bench): Promise<Section> {
  const title = "cost, applying new bookings";
  const measurements = await runRounds(bench, title, {
    "all of it": () => applyTwice(bench, undefined),
    "the event log twice": () => applyTwice(bench, "booking_events"),
    "the change row twice": () => applyTwice(bench, "booking_changes"),
  });
  return {
    title,
    measurements,
    comparisons: ["the event log twice", "the change row twice"].flatMap((of) => [
      { figure: "eventsPerSecond", of, to: "all of it" },
      { figure: "cpuUs", of, to: "all of it" },
      { figure: "postgresCpuUs", of, to: "all of it" },
    ]),
  };
}

async function applyTwice(bench: Bench, table: (typeof tables)[number] | undefined): Promise<Measurement> {
  const { services } = bench;
  const count = bench.isSmoke ? 1_500 : eventsMeasured;
  const queuePrefix = newQueuePrefix();
  const database = await services.createDatabase();
  try {
    await migrate(database.url);
    for (const each of tables) await database.query(`create table ${each}_again (like ${each} including all)`);
    const events = Array.from({ length: count }, (_, index) =>
      createEnvelope(index, { kind: "create", reference: `TRIP-${index}`, payload: fullBooking }),
    );
    await fillQueue(services.redisUrl, queuePrefix, events);
    const measurement = await measureApply(bench, {
      ...{ program: baseline("worker-twice"), concurrency: ourConcurrency, queuePrefix, database, count },
      environment: { TWICE: table ?? "nothing" },
    });
    for (const each of tables) {
      const [found] = await database.query<{ count: number }>(`select count(*)::int as count from ${each}_again`);
      const expected = each === table ? count : 0;
      if (found?.count !== expected)
        throw new IntegrityError(`${each}_again has ${found?.count}, not ${expected} rows.`);
    }
    return measurement;
  } finally {
    await database.drop();
    await services.emptyRedis();
  }
}
