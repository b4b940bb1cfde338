import { createDurations, type Duration } from "./durations.ts";

/** Where the sections of the runbook are, for links in alerts. */
const runbook = "docs/runbook.md";

/** Page: wake somebody. Ticket: on the next working day. Info: for those who wonder. */
type Severity = "page" | "ticket" | "info";

interface RecordingRule {
  record: string;
  expr: string;
}

export interface AlertingRule {
  alert: string;
  expr: string;
  for?: string;
  labels: { severity: Severity };
  annotations: { summary: string; description: string; runbook_url: string };
}

export interface RuleGroup {
  name: string;
  /** Default: that of Prometheus. */
  interval?: string;
  rules: (RecordingRule | AlertingRule)[];
}

/** Shares of requests and events that may fail, and the thresholds of alerts that an operator may want to change. */
const limits = {
  acceptBudget: 0.0005,
  failedQuestionsShare: 0.05,
  applyBudget: 0.01,
  /** A few retries of a partner that sends little are no reason to wake anybody. */
  minFailures: 10,
  oldestAge: "5m",
  guessesPerSecond: 1,
  /** Of the share of Redis' memory at which ingest refuses events. */
  memoryShare: 0.85,
  /** In a window that recurs. Who sends less has no rhythm that a silence would break. */
  minEventsOfRhythm: 10,
  minDaysOfRhythm: 4,
  minEventsOfAll: 50,
  refusedShare: 0.2,
  refusedGrowth: 3,
  minRefusals: 20,
  expiry: "14d",
  maintenanceAge: "1h",
} as const;

/**
 * The rules for Prometheus. Figures of the queue are the same in all processes, so they are aggregated by `max`, and
 * `namespace` keeps the deployments of a Kubernetes cluster apart. Elsewhere it is absent.
 *
 * One trouble fires one alert: an alert about consequences does not fire while an alert about a cause does. For that,
 * Prometheus must evaluate causes first, which the order in one group ensures.
 *
 * @param scale makes all durations shorter by this factor, for tests
 */
export function createRules(scale = 1): RuleGroup[] {
  const { text: d, seconds } = createDurations(scale);

  const alert = (
    name: string,
    severity: Severity,
    { expr, for: duration }: { expr: string; for?: Duration },
    texts: { summary: string; description: string },
  ): AlertingRule => ({
    alert: name,
    expr: expr.trim(),
    ...(duration === undefined ? {} : { for: d(duration) }),
    labels: { severity },
    annotations: { ...texts, runbook_url: `${runbook}#${name.toLowerCase()}` },
  });

  const redisIsDown = "max by (namespace) (booking_events_redis_up) == 0";
  const databaseIsDown = "max by (namespace) (booking_events_database_up) == 0";
  /** Whether one of these alerts fires. A pending one does not count, or one that comes and goes would hide others. */
  const fires = (...names: string[]) => `ALERTS{alertname=~"${names.join("|")}",alertstate="firing"}`;
  const hasFired = (duration: Duration, ...names: string[]) => `max_over_time(${fires(...names)}[${d(duration)}])`;

  const acceptCauses = ["IngestGone", "RedisDown", "RedisNotDurable", "RedisMemoryHigh"];
  const applyCauses = ["RedisDown", "DatabaseDown", "AllWorkersGone", "QueuePaused", "OldestEventWaits"];

  /**
   * Whether so much fails in both windows, and more than a few in the time of a third.
   *
   * @param factor 1 uses up the budget in the month for which it is meant
   */
  function burns(
    [failed, all]: [string, string],
    limit: { budget: number; factor: number },
    [long, short, countIn]: [Duration, Duration, Duration],
  ): string {
    const average = (series: string, window: Duration) => `avg_over_time(${series}[${d(window)}])`;
    const share = (window: Duration) => `${average(failed, window)} / ${average(all, window)}`;
    return [
      `${share(long)} > ${limit.factor} * ${limit.budget}`,
      `${share(short)} > ${limit.factor} * ${limit.budget}`,
      `${average(failed, countIn)} * ${seconds(countIn)} > ${limits.minFailures}`,
    ].join("\n  and ");
  }

  /** For what fails slowly, and for what fails fast: chapter 5 of the workbook of Google's site reliability engineers. */
  function budgetAlerts(
    name: string,
    series: [failed: string, all: string],
    { budget, causes }: { budget: number; causes: string[] },
    texts: { summary: string; description: string },
  ): AlertingRule[] {
    const page = `(
  (
  ${burns(series, { budget, factor: 14.4 }, ["1h", "5m", "1h"])}
  ) or (
  ${burns(series, { budget, factor: 6 }, ["6h", "30m", "1h"])}
  )
)
unless on (namespace) ${hasFired("30m", ...causes)}`;
    const ticket = `(
  ${burns(series, { budget, factor: 1 }, ["3d", "6h", "6h"])}
)
unless on (namespace) ${hasFired("6h", ...causes)}
unless on (namespace) max_over_time(ALERTS{alertname="${name}",alertstate="firing",severity="page"}[${d("6h")}])`;
    return [
      // Not before the alert about its cause.
      alert(name, "page", { expr: page, for: "3m" }, texts),
      // Not before the page.
      alert(name, "ticket", { expr: ticket, for: "15m" }, texts),
    ];
  }

  const days: Duration[] = ["1d", "2d", "3d", "4d", "5d", "6d", "7d"];
  /** Nothing in the window, although there is something in it on most days and was a week ago. */
  function isSilent(rate: string, window: Duration, minEvents: number): string {
    const count = (day: Duration) => `avg_over_time(${rate}[${d(window)}] offset ${d(day)}) * ${seconds(window)}`;
    return `(
  avg_over_time(${rate}[${d(window)}]) == 0
  and ${count("7d")} >= ${minEvents}
  and
  ${days.map((day) => `(${count(day)} >= bool ${minEvents})`).join("\n  + ")}
  >= ${limits.minDaysOfRhythm}
)`;
  }

  const record = (name: string, expr: string): RecordingRule => ({ record: name, expr });
  const rate = (metric: string) => `rate(${metric}[${d("5m")}])`;
  const accepted = "namespace:ingest_requests_valid:rate5m";
  const acceptFailed = "namespace:ingest_requests_failed:rate5m";
  const applied = "namespace:booking_events_applied:rate5m";
  const appliedLate = "namespace:booking_events_applied_late:rate5m";
  const expired = 'booking_events_processed_total{outcome="expired"}';
  const ofPartner = "namespace_partner:ingest_requests:rate5m";
  const refusedOfPartner = "namespace_partner:ingest_requests_refused:rate5m";
  const ofPartners = "namespace:ingest_requests_of_partners:rate5m";
  /** A series that does not exist yet counts as 0. */
  const orZero = (expr: string, all: string) => `${expr}\nor ${all} * 0`;

  const recordings = [
    record(accepted, `sum by (namespace) (${rate('ingest_requests_total{status=~"200|5.."}')})`),
    record(acceptFailed, orZero(`sum by (namespace) (${rate('ingest_requests_total{status=~"5.."}')})`, accepted)),
    record(applied, `sum by (namespace) (${rate("booking_events_apply_delay_seconds_count")})`),
    record(
      appliedLate,
      `clamp_min(${applied} - sum by (namespace) (${rate('booking_events_apply_delay_seconds_bucket{le=~"30(.0)?"}')}), 0)`,
    ),
    record(ofPartner, `sum by (namespace, partner) (${rate('ingest_requests_total{partner!="none"}')})`),
    record(
      refusedOfPartner,
      orZero(
        `sum by (namespace, partner) (${rate('ingest_requests_total{partner!="none",status=~"4.."}')})`,
        ofPartner,
      ),
    ),
    record(ofPartners, `sum by (namespace) (${ofPartner})`),
  ];

  const causes = [
    alert(
      "IngestGone",
      "page",
      {
        // A deployment that was there six hours ago, or none at all.
        expr: `
(
  max by (namespace) (max_over_time(up{job="ingest"}[${d("6h")}]))
  unless on (namespace) max by (namespace) (up{job="ingest"}) == 1
)
or absent(up{job="ingest"})`,
        for: "1m",
      },
      {
        summary: "No ingest answers Prometheus: partners' events are not received.",
        description: "Start ingest, or find out from its log why it ended. Partners retry for a while.",
      },
    ),
    alert(
      "RedisDown",
      "page",
      { expr: redisIsDown, for: "1m" },
      {
        summary: "Redis does not answer: partners get 503.",
        description: "Start Redis with its own data. Acknowledged events are safe as long as its disk is.",
      },
    ),
    alert(
      "RedisNotDurable",
      "page",
      {
        expr: `min by (namespace) (booking_events_redis_durable) == 0\nunless on (namespace) ${redisIsDown}`,
        for: "1m",
      },
      {
        summary: "Redis could lose what it confirms: ingest refuses events (503).",
        description: "/readyz of ingest names the setting. Correct it by CONFIG SET and in Redis' configuration.",
      },
    ),
    alert(
      "RedisMemoryHigh",
      "page",
      {
        expr: `
max by (namespace) (booking_events_redis_memory_ratio)
> on (namespace) ${limits.memoryShare} * min by (namespace) (ingest_shedding_limit{measure="memoryHighWater"})
unless on (namespace) ${redisIsDown}`,
        for: "1m",
      },
      {
        summary: "Redis uses {{ $value | humanizePercentage }} of its memory: ingest soon refuses events, or does.",
        description: "Find out why the backlog grows. If it does not, something else fills Redis. Raise maxmemory.",
      },
    ),
    alert(
      "DatabaseDown",
      "page",
      { expr: databaseIsDown, for: "1m" },
      {
        summary: "PostgreSQL does not answer, or takes no writes: events wait in Redis.",
        description: "/readyz of a worker says why. Partners notice nothing until Redis is full.",
      },
    ),
    alert(
      "AllWorkersGone",
      "page",
      {
        // Without work there may be no worker: KEDA starts the first one when an event waits.
        expr: `
max by (namespace) (sum without (state) (booking_events_backlog{state!="given-up"})) > 0
and on (namespace) max by (namespace) (booking_events_workers) == 0
unless on (namespace) ${databaseIsDown}
unless on (namespace) ${redisIsDown}`,
        for: "2m",
      },
      {
        summary: "{{ $value }} events are in the queue, and no worker takes them.",
        description:
          "Start workers. If they end again, their log says why. Partners notice nothing until Redis is full.",
      },
    ),
    alert(
      "QueuePaused",
      "info",
      { expr: "max by (namespace) (booking_events_queue_paused) == 1", for: "1m" },
      {
        summary: "An operator has paused the queue: events wait in Redis.",
        description: "To go on: npm run ops -- queue resume",
      },
    ),
  ];

  const others = [
    alert(
      "LookupFailing",
      "ticket",
      {
        expr: `
sum by (namespace) (${rate('lookup_requests_total{status=~"5.."}')})
> ${limits.failedQuestionsShare} * sum by (namespace) (${rate("lookup_requests_total")})
unless on (namespace) ${databaseIsDown}
unless on (namespace) ${redisIsDown}`,
        for: "5m",
      },
      {
        summary:
          "Lookup fails (5xx) on {{ $value | humanize }} questions a second, although Redis and PostgreSQL answer.",
        description: "/readyz of each lookup and its log say why. Check its network, credentials and database role.",
      },
    ),
    alert(
      "LookupGone",
      "ticket",
      {
        // Only a deployment that had one in the last six hours.
        expr: `
max by (namespace) (max_over_time(up{job="lookup"}[${d("6h")}])) == 1
unless on (namespace) max by (namespace) (up{job="lookup"}) == 1
unless on (namespace) ${fires("IngestGone")}`,
        for: "5m",
      },
      {
        summary: "No lookup answers Prometheus: partners' questions get no answer.",
        description: "Start lookup, or find out from its log why it ended. Events are received and applied as usual.",
      },
    ),
    alert(
      "DependencyPaused",
      "ticket",
      {
        expr: `
count by (namespace, dependency) (booking_events_paused == 1)
unless on (namespace) ${databaseIsDown}
unless on (namespace) ${redisIsDown}`,
        for: "5m",
      },
      {
        summary: "{{ $value }} of the workers wait for {{ $labels.dependency }}, although other processes reach it.",
        description: "/readyz of these workers says why. Check their network, name server and credentials.",
      },
    ),
    alert(
      "DeadLettersOpen",
      "ticket",
      {
        // Workers count them. Where there may be none, the last count stays.
        expr: `
max by (namespace, code) (booking_events_dead_letters_open) > 0
or (
  max by (namespace, code) (last_over_time(booking_events_dead_letters_open[${d("1d")}])) > 0
  unless on (namespace) max by (namespace) (booking_events_workers) > 0
)`,
      },
      {
        summary: "{{ $value }} acknowledged events could not be applied: {{ $labels.code }}.",
        description: "npm run ops -- dead-letters list shows them. Correct the cause, then replay them.",
      },
    ),
    alert(
      "EventsExpired",
      "page",
      {
        // Of a series that begins with its first event, Prometheus knows no increase.
        expr: `
sum by (namespace, partner) (
  (${expired} unless ${expired} offset ${d("30m")})
  or increase(${expired}[${d("30m")}])
) > 0`,
      },
      {
        summary:
          "{{ $value | humanize }} acknowledged events of partner {{ $labels.partner }} were older than the log.",
        description: "They are not applied, and their content is lost. Check all clocks: npm run ops -- doctor",
      },
    ),
    alert(
      "OldestEventWaits",
      "page",
      {
        // While the backlog of an outage is worked off, there is nothing to do. That shows by the age, after some time.
        expr: `
max by (namespace) (booking_events_backlog_oldest_age_seconds) > ${seconds(limits.oldestAge)}
unless on (namespace) (
  max by (namespace) (booking_events_backlog_oldest_age_seconds)
  < max by (namespace) (booking_events_backlog_oldest_age_seconds offset ${d("5m")}) - ${seconds("1m")}
)
unless on (namespace) ${hasFired("15m", "RedisDown", "DatabaseDown", "AllWorkersGone", "QueuePaused")}`,
        for: "2m",
      },
      {
        summary: "The oldest event has waited for {{ $value | humanizeDuration }}, and it does not get better.",
        description:
          "Add workers. If that does not help, look for what slows PostgreSQL, or for a worker that is stuck.",
      },
    ),
    ...budgetAlerts(
      "AcceptErrorBudgetBurn",
      [acceptFailed, accepted],
      { budget: limits.acceptBudget, causes: acceptCauses },
      {
        summary: "Too many valid requests fail (5xx) for the objective that 99.95 % are accepted.",
        description: "/readyz of each ingest and ingest_shedding say why events are refused. Partners retry.",
      },
    ),
    ...budgetAlerts(
      "ApplyErrorBudgetBurn",
      [appliedLate, applied],
      { budget: limits.applyBudget, causes: applyCauses },
      {
        summary: "Too many events are applied late for the objective that 99 % are within 30 s.",
        description: "Look for failed attempts, slow batches and a slow PostgreSQL, or add workers.",
      },
    ),
    alert(
      "SecretGuessing",
      "ticket",
      {
        expr: `sum by (namespace) (${rate('ingest_refused_secrets_total{cause="unknown-secret"}')}) > ${limits.guessesPerSecond}`,
        for: "1m",
      },
      {
        summary: "{{ $value | humanize }} unknown secrets a second are tried.",
        description:
          "Guessing is throttled and cannot succeed. The log names the address (outcome unknown-secret). " +
          "It may be a partner that lost its secret.",
      },
    ),
    alert(
      "MaintenanceStale",
      "ticket",
      {
        expr: `
time() - max by (namespace) (booking_events_maintenance_success_timestamp_seconds) > ${seconds(limits.maintenanceAge)}
unless on (namespace) ${databaseIsDown}`,
        for: "15m",
      },
      {
        summary: "Nobody has maintained the database for an hour: partitions and retention.",
        description: "The log of the workers says why.",
      },
    ),
  ];

  const silences = [
    alert(
      "PartnerSilent",
      "page",
      {
        expr: `${isSilent(ofPartners, "15m", limits.minEventsOfAll)}\nunless on (namespace) ${fires("IngestGone")}`,
        for: "5m",
      },
      {
        summary: "No partner sends anything, which is unusual at this time.",
        description: "Something in front of ingest may be broken: name server, certificate, proxy. Try from outside.",
      },
    ),
    alert(
      "PartnerSilent",
      "ticket",
      {
        expr: `
(
${isSilent(ofPartner, "1h", limits.minEventsOfRhythm)}
or
${isSilent(ofPartner, "1d", limits.minEventsOfRhythm)}
)
unless on (namespace) ${fires("IngestGone")}
unless on (namespace) avg_over_time(${ofPartners}[${d("15m")}]) == 0`,
        for: "5m",
      },
      {
        summary: "Partner {{ $labels.partner }} is silent, which is unusual at this time.",
        description: "Look for refusals before it fell silent (npm run ops -- refusals), and ask the partner.",
      },
    ),
    alert(
      "PartnerRefusalsJumped",
      "ticket",
      {
        expr: `
avg_over_time(${refusedOfPartner}[${d("15m")}]) / avg_over_time(${ofPartner}[${d("15m")}]) > ${limits.refusedShare}
and avg_over_time(${refusedOfPartner}[${d("15m")}]) * ${seconds("15m")} > ${limits.minRefusals}
unless (
  avg_over_time(${refusedOfPartner}[${d("15m")}]) / avg_over_time(${ofPartner}[${d("15m")}])
  <= ${limits.refusedGrowth} * avg_over_time(${refusedOfPartner}[${d("1d")}] offset ${d("15m")})
  / avg_over_time(${ofPartner}[${d("1d")}] offset ${d("15m")})
)`,
        for: "5m",
      },
      {
        summary:
          "{{ $value | humanizePercentage }} of what partner {{ $labels.partner }} sends is refused, " +
          "far more than yesterday.",
        description: "npm run ops -- refusals --partner {{ $labels.partner }} --since 1h shows why. Tell the partner.",
      },
    ),
    alert(
      "CertificateExpires",
      "ticket",
      {
        expr: `
(
  min by (namespace, server) (booking_events_certificate_expires_timestamp_seconds)
  or label_replace(min by (namespace) (probe_ssl_earliest_cert_expiry{job="proxy"}), "server", "proxy", "", "")
)
- time() < ${seconds(limits.expiry)}`,
      },
      {
        summary: "The certificate of {{ $labels.server }} expires in {{ $value | humanizeDuration }}.",
        description: "Renew it, and let the server read it. After that time nobody connects to it.",
      },
    ),
    alert(
      "SecretExpires",
      "ticket",
      {
        expr: `
max by (namespace, partner) (ingest_secret_expires_timestamp_seconds) - time() < ${seconds(limits.expiry)}`,
      },
      {
        summary: "The last secret of partner {{ $labels.partner }} expires in {{ $value | humanizeDuration }}.",
        description: "npm run ops -- partners rotate {{ $labels.partner }} --overlap 7d, or disable the partner.",
      },
    ),
  ];

  return [
    { name: "booking-events", rules: [...recordings, ...causes, ...others] },
    // Compares with the same hour of seven days, for each partner. In the first group, it would delay urgent alerts.
    { name: "booking-events-silence", interval: d("5m"), rules: silences },
  ];
}
