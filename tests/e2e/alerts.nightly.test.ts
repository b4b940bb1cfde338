import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRules } from "@booking-events/scripts/observability/rules";
import { findPrometheus } from "@booking-events/scripts/services";
import { describe, expect, test } from "vitest";
import { stringify } from "yaml";

// `npm test` installs it where it can.
describe.skipIf(findPrometheus() === undefined)("with promtool", () => {
  describe.each([
    { where: "as in Compose", namespace: {}, tried: scenarios },
    {
      where: "in one of two namespaces of a cluster",
      namespace: { namespace: "production" },
      // Where alerts consider each other.
      tried: scenarios.filter(({ length, expected }) => length === "2h" && Object.values(expected).flat().length > 0),
    },
  ])("$where", ({ namespace, tried }: { namespace: Record<string, string>; tried: Scenario[] }) => {
    test.each(tried)("$name", ({ length = "1h", step = "1m", only, change, expected }) => {
      const isCoarse = minutes(step) > 1;
      const series = (labels: Record<string, string>, changes: Changes) =>
        Object.entries(isCoarse ? toRates({ ...healthy, ...changes }) : { ...healthy, ...changes }).flatMap(
          ([name, values]) => (values === null ? [] : [toInput(name, labels, values, [length, step])]),
        );
      const others = namespace["namespace"] === undefined ? [] : series({ namespace: "staging" }, {});
      runPromtool({
        rules: { isRecording: !isCoarse, only },
        evaluation_interval: step,
        tests: [
          {
            interval: step,
            input_series: [...series(namespace, change), ...others],
            promql_expr_test: Object.entries(expected).map(([time, alerts]) => ({
              expr: 'ALERTS{alertstate="firing"}',
              eval_time: time,
              exp_samples: alerts.map((alert) => ({ labels: toAlertSeries(alert, namespace), value: 1 })),
            })),
          },
        ],
      });
    });
  });

  test("what Prometheus 3 makes of a whole number in a bucket's label is read as well", () => {
    const bucket = (le: string) => `booking_events_apply_delay_seconds_bucket{le="${le}"}`;
    runPromtool({
      rules: { isRecording: true },
      evaluation_interval: "1m",
      tests: [
        {
          interval: "1m",
          input_series: [
            { series: "booking_events_apply_delay_seconds_count", values: "0+120x20" },
            { series: bucket("30.0"), values: "0+60x20" },
            { series: bucket("300.0"), values: "0+120x20" },
          ],
          promql_expr_test: [
            {
              expr: "namespace:booking_events_applied_late:rate5m",
              eval_time: "10m",
              exp_samples: [{ labels: "namespace:booking_events_applied_late:rate5m", value: 1 }],
            },
          ],
        },
      ],
    });
  });
});

test("every alert has a scenario in which it fires, and one in which it is about to and does not", () => {
  const names = createRules().flatMap(({ rules }) => rules.flatMap((rule) => ("alert" in rule ? [rule.alert] : [])));
  const fired = scenarios.flatMap(({ expected }) => Object.values(expected).flat());
  expect(new Set(fired.map((alert) => alert.split(" ")[0]))).toEqual(new Set(names));
  const spared = scenarios.filter(({ expected }) => Object.values(expected).every((alerts) => alerts.length === 0));
  expect(new Set(spared.flatMap(({ name }) => name.match(/^\w+(?=:)/) ?? []))).toEqual(new Set(names));
});

/** The value of a series after so many minutes; null: it has none. */
type Values = (minute: number) => number | null;
type Changes = Record<string, Values | null>;

interface Scenario {
  name: string;
  /** By default an hour. */
  length?: Time;
  /** Between two samples; by default a minute. If rates need more samples, the rules get the rates themselves. */
  step?: Time;
  /** Evaluates only these alerts: all would take long for so much time. */
  only?: string[];
  /** What differs from {@link healthy}. null: the series does not exist. */
  change: Changes;
  /** The alerts that fire at each time, as "Name severity", and labels such as "partner=acme". */
  expected: Record<string, string[]>;
}

type Time = `${number}${"m" | "h" | "d"}`;

/** A value until a minute, another until a later one, and so on. */
function gauge(...phases: [...[until: number, value: number | null][], number | null]): Values {
  const last = phases.at(-1) as number | null;
  const earlier = phases.slice(0, -1) as [number, number | null][];
  return (minute) => (earlier.find(([until]) => minute < until) ?? [0, last])[1];
}

/** So much in each minute, until a minute, and so on. */
function counter(...phases: [...[until: number, perMinute: number][], number]): Values {
  const last = phases.at(-1) as number;
  const earlier = phases.slice(0, -1) as [number, number][];
  return (minute) => {
    let [sum, from] = [0, 0];
    for (const [until, perMinute] of earlier) {
      if (minute <= from) return sum;
      sum += perMinute * (Math.min(minute, until) - from);
      from = until;
    }
    return sum + last * Math.max(minute - from, 0);
  };
}

/** 0 until the first minute. Then it changes by so much in each, until the second. Then it is 0 again. */
function slope(from: number, perMinute: number, until = Number.POSITIVE_INFINITY, start = 0): Values {
  return (minute) => (minute < from || minute >= until ? 0 : start + perMinute * (minute - from));
}

const day = 1_440;
const inDays = (days: number) => gauge(days * 86_400);

const healthy: Changes = {
  'up{job="ingest"}': gauge(1),
  'up{job="worker"}': gauge(1),
  'up{job="lookup"}': gauge(1),
  'lookup_requests_total{kind="receipt",status="200",partner="acme"}': counter(60),
  'ingest_requests_total{kind="create",status="200",partner="acme"}': counter(600),
  'ingest_requests_total{kind="update",status="200",partner="zenith"}': counter(60),
  'ingest_refused_secrets_total{cause="unknown-secret",status="403"}': counter(1),
  'ingest_shedding_limit{measure="memoryHighWater"}': gauge(0.7),
  'ingest_shedding_limit{measure="maxBacklog"}': gauge(1e6),
  'ingest_secret_expires_timestamp_seconds{partner="acme"}': inDays(100),
  'booking_events_certificate_expires_timestamp_seconds{server="redis"}': inDays(100),
  booking_events_redis_up: gauge(1),
  booking_events_redis_durable: gauge(1),
  booking_events_redis_memory_ratio: gauge(0.1),
  booking_events_workers: gauge(2),
  booking_events_queue_paused: gauge(0),
  'booking_events_backlog{state="waiting"}': gauge(0),
  'booking_events_backlog{state="delayed"}': gauge(0),
  'booking_events_backlog{state="held"}': gauge(1),
  'booking_events_backlog{state="given-up"}': gauge(0),
  booking_events_backlog_oldest_age_seconds: gauge(0),
  booking_events_database_up: gauge(1),
  'booking_events_paused{dependency="postgresql",instance="a"}': gauge(0),
  'booking_events_paused{dependency="postgresql",instance="b"}': gauge(0),
  'booking_events_paused{dependency="redis",instance="a"}': gauge(0),
  booking_events_apply_delay_seconds_count: counter(660),
  'booking_events_apply_delay_seconds_bucket{le="30"}': counter(660),
  // The time, which begins at 0 here.
  booking_events_maintenance_success_timestamp_seconds: counter(60),
};

const accepted = 'ingest_requests_total{kind="create",status="200",partner="acme"}';
const failing = 'ingest_requests_total{kind="create",status="503",partner="acme"}';
const refused = 'ingest_requests_total{kind="create",status="422",partner="acme"}';
const zenith = 'ingest_requests_total{kind="update",status="200",partner="zenith"}';
const zenithRefused = 'ingest_requests_total{kind="update",status="422",partner="zenith"}';
const guesses = 'ingest_refused_secrets_total{cause="unknown-secret",status="403"}';
const failedQuestions = 'lookup_requests_total{kind="receipt",status="503",partner="acme"}';
const applied = "booking_events_apply_delay_seconds_count";
const onTime = 'booking_events_apply_delay_seconds_bucket{le="30"}';
const waiting = 'booking_events_backlog{state="waiting"}';
const held = 'booking_events_backlog{state="held"}';
const oldestAge = "booking_events_backlog_oldest_age_seconds";
const maintained = "booking_events_maintenance_success_timestamp_seconds";
const waitsForDatabase = (instance: string) => `booking_events_paused{dependency="postgresql",instance="${instance}"}`;
const expired = (partner: string) =>
  `booking_events_processed_total{kind="create",outcome="expired",partner="${partner}"}`;
const letters = (code: string, instance: string) =>
  `booking_events_dead_letters_open{code="${code}",instance="${instance}"}`;

const scenarios: Scenario[] = [
  { name: "nothing fires in health", length: "6h", change: {}, expected: { "1m": [], "30m": [], "6h": [] } },

  {
    name: "ingest does not answer Prometheus",
    change: {
      'up{job="ingest"}': gauge([10, 1], 0),
      [accepted]: (minute) => (minute < 10 ? minute * 600 : null),
      [zenith]: (minute) => (minute < 10 ? minute * 60 : null),
    },
    expected: { "10m": [], "12m": ["IngestGone page"], "50m": ["IngestGone page"] },
  },
  {
    name: "IngestGone: one of several restarts",
    change: { 'up{job="ingest",instance="other"}': gauge([10, 1], [15, 0], 1) },
    expected: { "11m": [], "13m": [], "30m": [] },
  },

  {
    name: "lookup fails on a tenth of the questions",
    change: { [failedQuestions]: counter([10, 0], [40, 6], 0) },
    expected: { "15m": [], "20m": ["LookupFailing ticket"], "39m": ["LookupFailing ticket"], "50m": [] },
  },
  {
    name: "LookupFailing: it fails on one of a hundred questions",
    change: { [failedQuestions]: counter(0.6) },
    expected: { "20m": [], "50m": [] },
  },
  {
    name: "LookupFailing: Redis is down, which is an alert of its own",
    change: { [failedQuestions]: counter([10, 0], 60), booking_events_redis_up: gauge([10, 1], 0) },
    expected: { "12m": ["RedisDown page"], "50m": ["RedisDown page"] },
  },

  {
    name: "lookup does not answer Prometheus",
    change: { 'up{job="lookup"}': gauge([10, 1], [40, 0], 1) },
    expected: { "14m": [], "16m": ["LookupGone ticket"], "39m": ["LookupGone ticket"], "41m": [] },
  },
  {
    name: "lookup is gone, and Prometheus has forgotten its address",
    change: { 'up{job="lookup"}': (minute) => (minute < 10 ? 1 : null) },
    expected: { "10m": [], "25m": ["LookupGone ticket"] },
  },
  {
    name: "LookupGone: a deployment without lookup, whose address Prometheus knows",
    change: { 'up{job="lookup"}': gauge(0) },
    expected: { "10m": [], "50m": [] },
  },
  {
    name: "LookupGone: one of several does not answer",
    change: { 'up{job="lookup",instance="other"}': gauge([10, 1], 0) },
    expected: { "10m": [], "50m": [] },
  },
  {
    name: "neither ingest nor lookup answers Prometheus, because their host is gone",
    change: {
      'up{job="lookup"}': gauge([10, 1], 0),
      'up{job="ingest"}': gauge([10, 1], 0),
      [accepted]: (minute) => (minute < 10 ? minute * 600 : null),
      [zenith]: (minute) => (minute < 10 ? minute * 60 : null),
    },
    expected: { "12m": ["IngestGone page"], "50m": ["IngestGone page"] },
  },

  {
    name: "Redis is down: the cause fires, and nothing of what follows from it, later either",
    length: "2h",
    change: {
      booking_events_redis_up: gauge([10, 1], [40, 0], 1),
      'booking_events_paused{dependency="redis",instance="a"}': gauge([10, 0], [40, 1], 0),
      [accepted]: counter([10, 600], [40, 0], 600),
      [failing]: counter([10, 0], [40, 600], 0),
      [applied]: counter([10, 660], [40, 0], 660),
      [onTime]: counter([10, 660], [45, 0], 660),
      [waiting]: gauge([40, 50], 0),
      [oldestAge]: gauge([40, 1], [45, 1_800], 0),
    },
    expected: {
      "10m": [],
      "12m": ["RedisDown page"],
      "39m": ["RedisDown page"],
      "42m": [],
      "60m": [],
      "90m": [],
      "2h": [],
    },
  },
  {
    name: "RedisDown: for one scrape",
    change: { booking_events_redis_up: gauge([10, 1], [11, 0], 1) },
    expected: { "10m": [], "11m": [], "20m": [] },
  },

  {
    name: "Redis is not durable: the cause fires, and not the refusals",
    change: {
      booking_events_redis_durable: gauge([10, 1], 0),
      [accepted]: counter([10, 600], 0),
      [failing]: counter([10, 0], 600),
    },
    expected: { "12m": ["RedisNotDurable page"], "20m": ["RedisNotDurable page"], "1h": ["RedisNotDurable page"] },
  },
  {
    name: "RedisNotDurable: while Redis, which is empty, writes its first file",
    change: { booking_events_redis_durable: gauge([10, 1], [11, 0], 1) },
    expected: { "10m": [], "11m": [], "20m": [] },
  },

  {
    name: "Redis fills up: before events are refused, and while they are",
    change: {
      booking_events_redis_memory_ratio: gauge([10, 0.1], [30, 0.6], 0.71),
      [accepted]: counter([30, 600], 0),
      [failing]: counter([30, 0], 600),
    },
    expected: { "12m": ["RedisMemoryHigh page"], "31m": ["RedisMemoryHigh page"], "1h": ["RedisMemoryHigh page"] },
  },
  {
    name: "RedisMemoryHigh: a backlog of ordinary size",
    change: { booking_events_redis_memory_ratio: gauge([10, 0.1], 0.59) },
    expected: { "12m": [], "1h": [] },
  },

  {
    name: "PostgreSQL is down: the cause fires, and nothing of what waits for it, later either",
    length: "2h",
    change: {
      booking_events_database_up: gauge([10, 1], [40, 0], 1),
      [waitsForDatabase("a")]: gauge([10, 0], [40, 1], 0),
      [waitsForDatabase("b")]: gauge([10, 0], [40, 1], 0),
      [waiting]: (minute) => slope(10, 600, 40)(minute) || slope(40, -3_000, 46, 18_000)(minute),
      [oldestAge]: (minute) => slope(10, 60, 40)(minute) || slope(40, -300, 46, 1_800)(minute),
      [applied]: counter([10, 660], [40, 0], [46, 3_960], 660),
      [onTime]: counter([10, 660], [46, 0], 660),
    },
    expected: {
      "10m": [],
      "12m": ["DatabaseDown page"],
      "39m": ["DatabaseDown page"],
      "42m": [],
      "47m": [],
      "60m": [],
      "90m": [],
      "2h": [],
    },
  },
  {
    name: "DatabaseDown: for one scrape, and one worker does not reach it",
    change: {
      booking_events_database_up: gauge([10, 1], [11, 0], 1),
      'booking_events_database_up{instance="b"}': gauge([10, 1], 0),
    },
    expected: { "10m": [], "11m": [], "20m": [] },
  },

  {
    name: "all workers are gone: seen from ingest alone",
    change: {
      'up{job="worker"}': gauge([10, 1], 0),
      booking_events_workers: gauge([10, 2], 0),
      booking_events_database_up: gauge([10, 1], null),
      [waitsForDatabase("a")]: gauge([10, 0], null),
      [waitsForDatabase("b")]: gauge([10, 0], null),
      'booking_events_paused{dependency="redis",instance="a"}': gauge([10, 0], null),
      [maintained]: (minute) => (minute < 10 ? minute * 60 : null),
      [applied]: (minute) => (minute < 10 ? minute * 660 : null),
      [onTime]: (minute) => (minute < 10 ? minute * 660 : null),
      [waiting]: slope(10, 660),
      [oldestAge]: slope(10, 60),
    },
    expected: { "11m": [], "14m": ["AllWorkersGone page"], "1h": ["AllWorkersGone page"] },
  },
  {
    name: "AllWorkersGone: there is nothing to do",
    change: { booking_events_workers: gauge(0), [held]: gauge(0) },
    expected: { "10m": [], "1h": [] },
  },
  {
    name: "AllWorkersGone: the first event wakes a worker",
    change: {
      booking_events_workers: gauge([12, 0], 1),
      [held]: gauge(0),
      [waiting]: gauge([10, 0], [12, 5], 0),
    },
    expected: { "11m": [], "12m": [], "20m": [] },
  },
  {
    name: "workers cannot start, because PostgreSQL is down",
    change: {
      booking_events_workers: gauge([10, 2], 0),
      booking_events_database_up: gauge([10, 1], 0),
      [waiting]: slope(10, 660),
    },
    expected: { "14m": ["DatabaseDown page"], "20m": ["DatabaseDown page"] },
  },

  {
    name: "the queue is paused: nothing of what waits because of that",
    change: {
      booking_events_queue_paused: gauge([10, 0], 1),
      [waiting]: slope(10, 660),
      [oldestAge]: slope(10, 60),
      [applied]: counter([10, 660], 0),
      [onTime]: counter([10, 660], 0),
    },
    expected: { "12m": ["QueuePaused info"], "1h": ["QueuePaused info"] },
  },
  {
    name: "QueuePaused: resumed at once",
    change: { booking_events_queue_paused: gauge([10, 0], [11, 1], 0) },
    expected: { "10m": [], "11m": [] },
  },

  {
    name: "one of two workers waits for PostgreSQL",
    change: { [waitsForDatabase("a")]: gauge([10, 0], 1) },
    expected: { "14m": [], "16m": ["DependencyPaused ticket dependency=postgresql"] },
  },
  {
    name: "DependencyPaused: for four minutes",
    change: { [waitsForDatabase("a")]: gauge([10, 0], [14, 1], 0) },
    expected: { "13m": [], "20m": [] },
  },

  {
    name: "the first dead letter of each code, even after the workers have gone, until it is resolved",
    length: "2h",
    change: {
      [letters("22003", "a")]: gauge([10, null], [30, 2], null),
      [letters("22003", "b")]: gauge([60, null], [70, 2], null),
      [letters("STALLED", "a")]: gauge([10, null], [15, 1], null),
      booking_events_workers: gauge([30, 1], [60, 0], 1),
      [held]: gauge(0),
    },
    expected: {
      "9m": [],
      "12m": ["DeadLettersOpen ticket code=22003", "DeadLettersOpen ticket code=STALLED"],
      "25m": ["DeadLettersOpen ticket code=22003"],
      // Whichever were open within a day.
      "50m": ["DeadLettersOpen ticket code=22003", "DeadLettersOpen ticket code=STALLED"],
      "66m": ["DeadLettersOpen ticket code=22003"],
      "80m": [],
    },
  },
  {
    name: "DeadLettersOpen: none is open",
    change: { [letters("22003", "a")]: gauge(0) },
    expected: { "10m": [], "1h": [] },
  },

  {
    name: "events are older than the log: the first of a partner, and further ones of another",
    length: "2h",
    change: {
      [expired("acme")]: gauge([10, null], 1),
      [expired("zenith")]: counter([60, 0], [70, 3], 0),
    },
    expected: {
      "9m": [],
      "10m": ["EventsExpired page partner=acme"],
      "39m": ["EventsExpired page partner=acme"],
      "45m": [],
      "65m": ["EventsExpired page partner=zenith"],
      "110m": [],
    },
  },
  {
    name: "EventsExpired: some did long ago",
    change: { [expired("acme")]: gauge(7) },
    expected: { "31m": [], "1h": [] },
  },

  {
    name: "nothing is applied, although workers run and PostgreSQL is up",
    change: {
      [waiting]: slope(10, 660),
      [oldestAge]: slope(10, 60),
      [applied]: counter([10, 660], 0),
      [onTime]: counter([10, 660], 0),
    },
    expected: { "16m": [], "19m": ["OldestEventWaits page"], "1h": ["OldestEventWaits page"] },
  },
  {
    name: "OldestEventWaits: less and less, after an outage",
    change: { [waiting]: slope(0, -200, 33, 6_600), [oldestAge]: slope(0, -60, 30, 1_800) },
    expected: { "8m": [], "10m": [], "20m": [], "1h": [] },
  },

  {
    name: "a tenth of the requests fails, for no known reason",
    length: "2h",
    change: { [accepted]: counter([60, 600], 540), [failing]: counter([60, 0], 60) },
    expected: { "60m": [], "62m": [], "75m": ["AcceptErrorBudgetBurn page"], "2h": ["AcceptErrorBudgetBurn page"] },
  },
  {
    name: "half a percent of the requests fails for hours",
    length: "6h",
    step: "5m",
    change: { [failing]: counter([100, 0], 3) },
    expected: { "100m": [], "6h": ["AcceptErrorBudgetBurn page"] },
  },
  {
    name: "so few fail all the time that it is no reason to wake anybody",
    length: "2d",
    step: "10m",
    change: { [accepted]: counter(6_000), [failing]: counter([60, 0], 8) },
    expected: { "2d": ["AcceptErrorBudgetBurn ticket"] },
  },
  {
    name: "AcceptErrorBudgetBurn: six of very few fail",
    length: "7h",
    change: { [accepted]: counter(1), [failing]: counter([360, 0], [366, 1], 0), [zenith]: null },
    expected: { "370m": [], "7h": [] },
  },

  {
    name: "a third of the events is late, for no known reason",
    length: "2h",
    change: { [onTime]: counter([60, 660], 440) },
    expected: { "60m": [], "100m": ["ApplyErrorBudgetBurn page"], "2h": ["ApplyErrorBudgetBurn page"] },
  },
  {
    name: "so few are late all the time that it is no reason to wake anybody",
    length: "2d",
    step: "10m",
    change: { [onTime]: counter(640) },
    expected: { "2d": ["ApplyErrorBudgetBurn ticket"] },
  },
  {
    name: "ApplyErrorBudgetBurn: half a percent is late",
    length: "2d",
    step: "10m",
    change: { [onTime]: counter(657) },
    expected: { "1d": [], "2d": [] },
  },

  {
    name: "somebody guesses secrets, and is throttled",
    change: {
      [guesses]: counter([10, 1], 20),
      'ingest_refused_secrets_total{cause="unknown-secret",status="429"}': counter([10, 0], 100),
    },
    expected: { "10m": [], "20m": ["SecretGuessing ticket"] },
  },
  {
    name: "SecretGuessing: a scanner passes by, and a partner uses an expired secret",
    change: {
      [guesses]: counter([10, 1], [11, 250], 1),
      'ingest_refused_secrets_total{cause="expired-secret",status="403"}': counter([10, 0], 600),
    },
    expected: { "12m": [], "30m": [] },
  },

  {
    name: "a partner that sends all day falls silent, and others do not",
    length: "9d",
    step: "30m",
    only: ["PartnerSilent", "IngestGone"],
    change: { [zenith]: counter([8 * day, 60], 0) },
    expected: { "8d": [], "8d2h": ["PartnerSilent ticket partner=zenith"] },
  },
  {
    name: "PartnerSilent: who sends little, who does not work at the weekend, and who works at night",
    length: "16d",
    step: "30m",
    only: ["PartnerSilent", "IngestGone"],
    change: {
      [zenith]: (minute) => Math.floor(minute / 200),
      'ingest_requests_total{partner="office",status="200"}': counter(...workdays(3)),
      'ingest_requests_total{partner="night",status="200"}': (minute) => {
        const hours = Math.floor(minute / 60);
        return 60 * (Math.floor(hours / 24) * 6 + Math.min(hours % 24, 6));
      },
    },
    expected: { "7d12h": [], "11d": [], "12d12h": [], "13d": [], "14d9h": [], "16d": [] },
  },
  {
    name: "a partner that works at night does not in one",
    length: "9d",
    step: "30m",
    only: ["PartnerSilent", "IngestGone"],
    change: {
      [zenith]: (minute) => {
        const hours = Math.min(minute / 60, 8 * 24);
        return 3_600 * (Math.floor(hours / 24) * 6 + Math.min(hours % 24, 6));
      },
    },
    expected: { "7d12h": [], "8d": [], "8d3h": ["PartnerSilent ticket partner=zenith"] },
  },
  {
    name: "nobody sends anything: what is in front of ingest is broken",
    length: "9d",
    step: "30m",
    only: ["PartnerSilent", "IngestGone"],
    change: { [zenith]: counter([8 * day, 60], 0), [accepted]: counter([8 * day, 600], 0) },
    expected: { "8d": [], "8d90m": ["PartnerSilent page"], "8d3h": ["PartnerSilent page"] },
  },

  {
    name: "half of what a partner sends is refused, after a release of theirs",
    length: "4h",
    change: { [accepted]: counter([120, 600], 300), [refused]: counter([120, 1], 300) },
    expected: { "2h": [], "150m": ["PartnerRefusalsJumped ticket partner=acme"] },
  },
  {
    name: "PartnerRefusalsJumped: one that always sends garbage, and one that tries something out",
    length: "4h",
    change: {
      [refused]: counter(600),
      [zenith]: counter(0),
      [zenithRefused]: counter([120, 0], [130, 1], 0),
    },
    expected: { "125m": [], "4h": [] },
  },

  {
    name: "a certificate expires in thirteen days: one of ours, and the proxy's that somebody probes",
    change: {
      'booking_events_certificate_expires_timestamp_seconds{server="postgresql"}': inDays(13),
      'probe_ssl_earliest_cert_expiry{job="proxy",instance="https://events.example.com"}': inDays(13),
      'probe_ssl_earliest_cert_expiry{job="other"}': gauge(1),
    },
    expected: { "10m": ["CertificateExpires ticket server=postgresql", "CertificateExpires ticket server=proxy"] },
  },
  {
    name: "CertificateExpires: in fifteen days",
    change: { 'booking_events_certificate_expires_timestamp_seconds{server="postgresql"}': inDays(15) },
    expected: { "10m": [], "1h": [] },
  },

  {
    name: "the last secret of a partner expires in thirteen days, that of another has expired",
    change: {
      'ingest_secret_expires_timestamp_seconds{partner="acme"}': inDays(13),
      'ingest_secret_expires_timestamp_seconds{partner="zenith"}': gauge(1),
    },
    expected: { "10m": ["SecretExpires ticket partner=acme", "SecretExpires ticket partner=zenith"] },
  },
  {
    name: "SecretExpires: in fifteen days",
    change: { 'ingest_secret_expires_timestamp_seconds{partner="acme"}': inDays(15) },
    expected: { "10m": [], "1h": [] },
  },

  {
    name: "the database has not been maintained for more than an hour",
    length: "3h",
    change: { [maintained]: counter([30, 60], 0) },
    expected: { "1h": [], "2h": ["MaintenanceStale ticket"] },
  },
  {
    name: "MaintenanceStale: every ten minutes, after an outage of two hours at the next time",
    length: "4h",
    change: {
      [maintained]: (minute) => 600 * (minute < 60 || minute >= 190 ? Math.floor(minute / 10) : 6),
      booking_events_database_up: gauge([60, 1], [180, 0], 1),
    },
    expected: { "30m": [], "183m": [], "4h": [] },
  },
];

/** From nine to five, on five days of each of three weeks. */
function workdays(perMinute: number): [...[number, number][], number] {
  const days = Array.from({ length: 21 }, (_, index) => index).filter((index) => index % 7 < 5);
  return [
    ...days.flatMap((index): [number, number][] => [
      [index * day + 9 * 60, 0],
      [index * day + 17 * 60, perMinute],
    ]),
    0,
  ];
}

function minutes(time: Time): number {
  const inMinutes = { m: 1, h: 60, d: day };
  return Number.parseInt(time, 10) * inMinutes[time.slice(-1) as keyof typeof inMinutes];
}

function toInput(name: string, labels: Record<string, string>, values: Values, [length, step]: [Time, Time]) {
  const times = Array.from({ length: minutes(length) / minutes(step) + 1 }, (_, index) => index * minutes(step));
  return { series: addLabels(name, labels), values: times.map((minute) => values(minute) ?? "_").join(" ") };
}

function addLabels(name: string, labels: Record<string, string>): string {
  const [, metric, own] = /^([\w:]+)(?:\{(.*)\})?$/.exec(name) ?? [];
  const added = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
  return `${metric}{${[...(own === undefined ? [] : [own]), ...added].join(",")}}`;
}

function toAlertSeries(alert: string, namespace: Record<string, string>): string {
  const [alertname = "", severity = "", ...others] = alert.split(" ");
  const labels = Object.fromEntries(others.map((label) => label.split("=") as [string, string]));
  return addLabels("ALERTS", { alertname, alertstate: "firing", severity, ...labels, ...namespace });
}

/** Adds what the recording rules make of the counters. */
function toRates(changes: Changes): Changes {
  const matching = (pattern: RegExp): Values => {
    const counters = Object.entries(changes).flatMap(([name, values]) =>
      values !== null && pattern.test(name) ? [values] : [],
    );
    const sumAt = (minute: number) => counters.reduce((sum, values) => sum + (values(minute) ?? 0), 0);
    return (minute) => (minute < 5 ? null : (sumAt(minute) - sumAt(minute - 5)) / 300);
  };
  const late = { all: matching(/apply_delay_seconds_count/), onTime: matching(/apply_delay_seconds_bucket/) };
  const partners = new Set(
    Object.keys(changes).flatMap((name) => /ingest_requests_total.*partner="(\w+)"/.exec(name)?.[1] ?? []),
  );
  const ofPartners = [...partners].map((partner): Changes => {
    const label = `{partner="${partner}"}`;
    return {
      [`namespace_partner:ingest_requests:rate5m${label}`]: matching(
        new RegExp(`ingest_requests_total.*partner="${partner}"`),
      ),
      [`namespace_partner:ingest_requests_refused:rate5m${label}`]: gauge(0),
    };
  });
  return Object.assign(
    {
      ...changes,
      "namespace:ingest_requests_valid:rate5m": matching(/ingest_requests_total.*status="(200|503)"/),
      "namespace:ingest_requests_failed:rate5m": matching(/ingest_requests_total.*status="503"/),
      "namespace:ingest_requests_of_partners:rate5m": matching(/ingest_requests_total/),
      "namespace:booking_events_applied:rate5m": late.all,
      "namespace:booking_events_applied_late:rate5m": (minute: number) =>
        (late.all(minute) ?? 0) - (late.onTime(minute) ?? 0),
    },
    ...ofPartners,
  );
}

interface Suite {
  rules: { isRecording: boolean; only?: string[] | undefined };
  evaluation_interval: string;
  tests: object[];
}

function runPromtool({ rules: { isRecording, only }, ...suite }: Suite): void {
  const folder = mkdtempSync(join(tmpdir(), "booking-events-alerts-"));
  try {
    const groups = createRules().map(({ rules, ...group }) => ({
      ...group,
      rules: rules.filter((rule) => ("alert" in rule ? (only?.includes(rule.alert) ?? true) : isRecording)),
    }));
    writeFileSync(join(folder, "rules.yml"), stringify({ groups }));
    writeFileSync(join(folder, "suite.yml"), stringify({ rule_files: ["rules.yml"], ...suite }, { lineWidth: 0 }));
    const { stdout, stderr } = spawnSync("promtool", ["test", "rules", join(folder, "suite.yml")], {
      encoding: "utf8",
    });
    expect(`${stdout}${stderr}`.replaceAll(folder, "")).toContain("SUCCESS");
  } finally {
    rmSync(folder, { recursive: true });
  }
}
