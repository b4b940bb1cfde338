/** The parts of Grafana's JSON model of dashboards that ours use. */
export interface Dashboard {
  uid: string;
  title: string;
  description: string;
  tags: string[];
  schemaVersion: number;
  editable: boolean;
  graphTooltip: number;
  refresh: string;
  time: { from: string; to: string };
  templating: { list: object[] };
  panels: (Panel | RowPanel)[];
}

export interface Target {
  refId: string;
  expr: string;
  legendFormat: string;
  /** One value instead of a course. */
  instant: boolean;
  range: boolean;
  datasource: typeof datasource;
}

export interface Panel {
  id: number;
  type: "timeseries" | "stat" | "table";
  title: string;
  description: string;
  gridPos: GridPosition;
  datasource: typeof datasource;
  fieldConfig: object;
  options: object;
  targets: Target[];
  transformations?: object[];
}

interface RowPanel {
  id: number;
  type: "row";
  title: string;
  collapsed: boolean;
  gridPos: GridPosition;
  panels: [];
}

interface GridPosition {
  x: number;
  y: number;
  w: number;
  h: number;
}

/** Grafana's ids of units. */
type Unit = "short" | "reqps" | "ops" | "s" | "bytes" | "percentunit" | "percentunit.4" | "d";

interface PanelContent {
  type?: Panel["type"];
  title: string;
  description?: string;
  unit?: Unit;
  /** Expressions by legend. In the legend, a label stands in double braces. */
  show: Record<string, string>;
  /** From this value on, it is red. For a value that is bad below, `redBelow`. */
  redFrom?: number;
  redBelow?: number;
}

type Section = [title: string, panels: PanelContent[]];

const columns = 24;
const heights = { timeseries: 8, stat: 4, table: 8, row: 1 };
const widths = { timeseries: 8, stat: 4, table: 24 };
const datasource = { type: "prometheus", uid: "$datasource" };

/** The files in deploy/observability/dashboards, by name. */
export function createDashboards(): Record<string, Dashboard> {
  return {
    service: toDashboard("Service", "Whether partners' events get through, and what they wait for.", service, []),
    partners: toDashboard("Partners", "What each partner sends, and what becomes of it.", partners, [partnerVariable]),
    internals: toDashboard("Internals", "How the processes do.", internals, []),
  };
}

/** Of the series in the chosen namespaces, or of all where there are no namespaces. */
function of(metric: string, ...matchers: string[]): string {
  return `${metric}{${['namespace=~"$namespace"', ...matchers].join(",")}}`;
}

function ofPartner(metric: string, ...matchers: string[]): string {
  return of(metric, 'partner=~"$partner"', ...matchers);
}

function rate(series: string): string {
  return `rate(${series}[$__rate_interval])`;
}

function quantiles(histogram: string, ...matchers: string[]): Record<string, string> {
  const quantile = (share: number) =>
    `histogram_quantile(${share}, sum by (le) (${rate(of(`${histogram}_bucket`, ...matchers))}))`;
  return { median: quantile(0.5), "99 %": quantile(0.99) };
}

/** In the time that the dashboard shows. */
function shareOfGood(failed: string, all: string): string {
  const sum = (series: string) => `sum(avg_over_time(${of(series)}[$__range]))`;
  return `1 - ${sum(failed)} / ${sum(all)}`;
}

function daysUntil(metric: string, label: string): string {
  return `(min by (${label}) (${of(metric)}) - time()) / 86400`;
}

const service: Section[] = [
  [
    "Objectives",
    [
      {
        type: "stat",
        title: "Accepted",
        description: "Valid requests that were answered with 200. The objective is 99.95 %.",
        unit: "percentunit.4",
        show: {
          accepted: shareOfGood("namespace:ingest_requests_failed:rate5m", "namespace:ingest_requests_valid:rate5m"),
        },
        redBelow: 0.9995,
      },
      {
        type: "stat",
        title: "Applied within 30 s",
        description: "The objective is 99 %.",
        unit: "percentunit.4",
        show: {
          "in time": shareOfGood(
            "namespace:booking_events_applied_late:rate5m",
            "namespace:booking_events_applied:rate5m",
          ),
        },
        redBelow: 0.99,
      },
      {
        type: "stat",
        title: "Oldest event waits",
        unit: "s",
        show: { age: `max(${of("booking_events_backlog_oldest_age_seconds")})` },
        redFrom: 300,
      },
      {
        type: "stat",
        title: "Dead letters",
        show: { open: `sum(max by (code) (${of("booking_events_dead_letters_open")})) or vector(0)` },
        redFrom: 1,
      },
      {
        type: "stat",
        title: "Workers",
        description: "Those that take events. Without work there may be none.",
        show: { workers: `max(${of("booking_events_workers")})` },
      },
      {
        type: "stat",
        title: "Ingests",
        show: { ingests: `sum(${of("up", 'job="ingest"')})` },
        redBelow: 1,
      },
      {
        type: "table",
        title: "Alerts",
        show: {
          "{{alertname}}": `sum by (alertname, severity, partner, code) (${of("ALERTS", 'alertstate="firing"')})`,
        },
      },
    ],
  ],
  [
    "Events",
    [
      {
        title: "Requests by status",
        unit: "reqps",
        show: { "{{status}}": `sum by (status) (${rate(of("ingest_requests_total"))})` },
      },
      {
        title: "Events by outcome",
        unit: "ops",
        show: { "{{outcome}}": `sum by (outcome) (${rate(of("booking_events_processed_total"))})` },
      },
      {
        title: "Open dead letters by code",
        show: { "{{code}}": `max by (code) (${of("booking_events_dead_letters_open")})` },
      },
      {
        title: "Time to the answer 200",
        unit: "s",
        show: quantiles("ingest_request_duration_seconds", 'status="200"'),
      },
      {
        title: "Time until applied",
        description: "What partners feel.",
        unit: "s",
        show: quantiles("booking_events_apply_delay_seconds"),
      },
      {
        title: "Failed attempts by code",
        unit: "ops",
        show: { "{{code}}": `sum by (code) (${rate(of("booking_events_attempts_failed_total"))})` },
      },
      { title: "Backlog", show: { "{{state}}": `max by (state) (${of("booking_events_backlog")})` } },
      {
        title: "Age of the oldest event",
        unit: "s",
        show: { age: `max(${of("booking_events_backlog_oldest_age_seconds")})` },
      },
      {
        title: "Time to work off the backlog",
        unit: "s",
        show: { time: `max(${of("booking_events_backlog_drain_seconds")})` },
      },
    ],
  ],
  [
    "Dependencies",
    [
      {
        title: "Up",
        description: "The worst that any process sees.",
        show: {
          PostgreSQL: `min(${of("booking_events_database_up")})`,
          Redis: `min(${of("booking_events_redis_up")})`,
          "Redis is durable": `min(${of("booking_events_redis_durable")})`,
        },
      },
      {
        title: "Workers that wait",
        show: { "{{dependency}}": `sum by (dependency) (${of("booking_events_paused")})` },
      },
      {
        title: "Memory of Redis",
        unit: "percentunit",
        show: {
          used: `max(${of("booking_events_redis_memory_ratio")})`,
          "events are refused": `min(${of("ingest_shedding_limit", 'measure="memoryHighWater"')})`,
        },
      },
      { title: "Time until Redis has an event on disk", unit: "s", show: quantiles("ingest_enqueue_duration_seconds") },
      {
        title: "Refusals because of load",
        description: "How many ingests refuse events because of this measure.",
        show: { "{{measure}}": `sum by (measure) (${of("ingest_shedding")})` },
      },
      {
        title: "Days until certificates expire",
        unit: "d",
        show: { "{{server}}": daysUntil("booking_events_certificate_expires_timestamp_seconds", "server") },
      },
    ],
  ],
];

const partners: Section[] = [
  [
    "Traffic",
    [
      {
        title: "Requests",
        unit: "reqps",
        show: { "{{partner}}": `sum by (partner) (${rate(ofPartner("ingest_requests_total"))})` },
      },
      {
        title: "Refused",
        unit: "reqps",
        show: {
          "{{partner}}: {{status}}": `sum by (partner, status) (${rate(ofPartner("ingest_requests_total", 'status=~"4.."'))})`,
        },
      },
      {
        title: "Refused share",
        unit: "percentunit",
        show: {
          "{{partner}}":
            `sum by (partner) (${ofPartner("namespace_partner:ingest_requests_refused:rate5m")})\n` +
            `/ sum by (partner) (${ofPartner("namespace_partner:ingest_requests:rate5m")})`,
        },
      },
      {
        title: "Requests an hour, and a week before",
        description: "Shows who is silent.",
        show: {
          "{{partner}}": `sum by (partner) (avg_over_time(${ofPartner("namespace_partner:ingest_requests:rate5m")}[1h])) * 3600`,
          "{{partner}}, a week before": `sum by (partner) (avg_over_time(${ofPartner("namespace_partner:ingest_requests:rate5m")}[1h] offset 1w)) * 3600`,
        },
      },
      {
        title: "Applied",
        unit: "ops",
        show: { "{{partner}}": `sum by (partner) (${rate(ofPartner("booking_events_processed_total"))})` },
      },
      {
        title: "Outcomes other than created, updated and deleted",
        unit: "ops",
        show: {
          "{{partner}}: {{outcome}}": `sum by (partner, outcome) (${rate(ofPartner("booking_events_processed_total", 'outcome!~"created|updated|deleted"'))})`,
        },
      },
    ],
  ],
  [
    "Mistakes",
    [
      {
        title: "Violations by field and rule",
        unit: "ops",
        show: { "{{field}}: {{rule}}": `topk(10, sum by (field, rule) (${rate(of("ingest_violations_total"))}))` },
      },
      {
        title: "Unlisted fields",
        unit: "ops",
        show: {
          "{{partner}}: {{name}}": `topk(20, sum by (partner, name) (${rate(ofPartner("ingest_unknown_fields_total"))}))`,
        },
      },
      {
        title: "Warnings",
        unit: "ops",
        show: { "{{code}}": `sum by (code) (${rate(of("booking_events_warnings_total"))})` },
      },
      {
        title: "Refused secrets by cause",
        unit: "reqps",
        show: { "{{cause}}": `sum by (cause) (${rate(of("ingest_refused_secrets_total"))})` },
      },
      {
        title: "Days until the last secret expires",
        unit: "d",
        show: { "{{partner}}": daysUntil(`ingest_secret_expires_timestamp_seconds`, "partner") },
      },
    ],
  ],
];

const internals: Section[] = [
  [
    "Processes",
    [
      {
        title: "CPU",
        unit: "percentunit",
        show: { "{{instance}}": rate(of("process_cpu_seconds_total", 'process=~"ingest|worker"')) },
      },
      {
        title: "Memory",
        unit: "bytes",
        show: { "{{instance}}": of("process_resident_memory_bytes", 'process=~"ingest|worker"') },
      },
      { title: "Heap", unit: "bytes", show: { "{{instance}}": of("nodejs_heap_size_used_bytes") } },
      {
        title: "Delay of the event loop, 99 %",
        unit: "s",
        show: { "{{instance}}": of("nodejs_eventloop_lag_p99_seconds") },
      },
      {
        title: "Time in garbage collection",
        unit: "percentunit",
        show: { "{{instance}}": `sum by (instance) (${rate(of("nodejs_gc_duration_seconds_sum"))})` },
      },
      {
        title: "Freezes and late connections",
        show: {
          "{{instance}} freezes": `increase(${of("ingest_freezes_total")}[$__rate_interval])`,
          "{{instance}} late connections": `increase(${of("ingest_late_connections_total")}[$__rate_interval])`,
        },
      },
      {
        type: "table",
        title: "Versions",
        show: { "{{process}} {{version}}": `count by (process, version, node) (${of("booking_events_build_info")})` },
      },
    ],
  ],
  [
    "Ingest",
    [
      { title: "Connections", show: { "{{instance}}": of("ingest_connections") } },
      { title: "Requests in flight", show: { "{{instance}}": of("ingest_requests_in_flight") } },
      {
        title: "Requests limited without Redis",
        unit: "reqps",
        show: { "{{instance}}": rate(of("ingest_rate_limit_by_share_total")) },
      },
    ],
  ],
  [
    "Worker",
    [
      { title: "Events in a transaction", show: quantiles("booking_events_batch_events") },
      { title: "Characters in a transaction", show: quantiles("booking_events_batch_characters") },
      { title: "Transactions", unit: "ops", show: { "{{instance}}": rate(of("booking_events_batch_events_count")) } },
      {
        title: "Stuck, or with events that nobody could handle",
        show: {
          "{{instance}}: stuck": of("booking_events_worker_stuck"),
          "{{instance}}: sweep failures": `increase(${of("booking_events_sweep_failures_total")}[$__rate_interval])`,
        },
      },
      {
        title: "Time since the last maintenance",
        unit: "s",
        show: { time: `time() - max(${of("booking_events_maintenance_success_timestamp_seconds")})` },
      },
      { title: "Rows in the default partition", show: { rows: `max(${of("booking_events_default_partition_rows")})` } },
    ],
  ],
];

function toDashboard(title: string, description: string, sections: Section[], variables: object[]): Dashboard {
  return {
    uid: `booking-events-${title.toLowerCase()}`,
    title: `Booking events: ${title}`,
    description,
    tags: ["booking-events"],
    schemaVersion: 39,
    editable: true,
    // One crosshair in all panels.
    graphTooltip: 1,
    refresh: "30s",
    time: { from: "now-6h", to: "now" },
    templating: { list: [datasourceVariable, namespaceVariable, ...variables] },
    panels: layOut(sections),
  };
}

const datasourceVariable = { name: "datasource", type: "datasource", query: "prometheus", label: "Prometheus" };
const namespaceVariable = labelVariable("namespace", "booking_events_build_info");
const partnerVariable = labelVariable("partner", "ingest_requests_total");

/** The values of a label, or all of them. A series without the label counts as well. */
function labelVariable(label: string, metric: string): object {
  const query = `label_values(${metric}, ${label})`;
  return {
    name: label,
    type: "query",
    datasource,
    definition: query,
    query: { query, refId: "A" },
    refresh: 2,
    sort: 1,
    multi: true,
    includeAll: true,
    allValue: ".*",
    current: { text: "All", value: "$__all" },
  };
}

/** From left to right, in lines of panels of the same height. */
function layOut(sections: Section[]): Dashboard["panels"] {
  const panels: Dashboard["panels"] = [];
  let [x, y, lineHeight] = [0, 0, 0];
  const place = (w: number, h: number): GridPosition => {
    if (x + w > columns || (lineHeight !== 0 && h !== lineHeight)) [x, y] = [0, y + lineHeight];
    const position = { x, y, w, h };
    [x, lineHeight] = [x + w, h];
    return position;
  };
  for (const [title, contents] of sections) {
    const gridPos = place(columns, heights.row);
    panels.push({ id: panels.length + 1, type: "row", title, collapsed: false, gridPos, panels: [] });
    for (const content of contents) {
      const type = content.type ?? "timeseries";
      panels.push(toPanel(content, panels.length + 1, place(widths[type], heights[type])));
    }
  }
  return panels;
}

function toPanel(content: PanelContent, id: number, gridPos: GridPosition): Panel {
  const { type = "timeseries", title, description = "", unit = "short", show } = content;
  return {
    id,
    type,
    title,
    description,
    gridPos,
    datasource,
    fieldConfig: {
      defaults: {
        ...toUnit(unit),
        ...(type === "timeseries" ? { min: 0 } : {}),
        thresholds: { mode: "absolute", steps: toThresholds(content) },
      },
      overrides: [],
    },
    options: options[type],
    targets: Object.entries(show).map(([legendFormat, expr], index) => ({
      refId: String.fromCharCode("A".charCodeAt(0) + index),
      expr,
      legendFormat,
      instant: type !== "timeseries",
      range: type === "timeseries",
      datasource,
    })),
    ...(type === "table" ? { transformations: [{ id: "labelsToFields" }, { id: "merge" }] } : {}),
  };
}

function toUnit(unit: Unit): { unit: string; decimals?: number } {
  return unit === "percentunit.4" ? { unit: "percentunit", decimals: 2 } : { unit };
}

function toThresholds({ redFrom, redBelow }: PanelContent): { color: string; value: number | null }[] {
  if (redFrom !== undefined) return [step("green", null), step("red", redFrom)];
  if (redBelow !== undefined) return [step("red", null), step("green", redBelow)];
  return [step("green", null)];
}

function step(color: string, value: number | null): { color: string; value: number | null } {
  return { color, value };
}

const options = {
  timeseries: {
    legend: { displayMode: "list", placement: "bottom", showLegend: true },
    tooltip: { mode: "multi", sort: "desc" },
  },
  stat: { reduceOptions: { calcs: ["lastNotNull"], fields: "", values: false }, colorMode: "value", graphMode: "none" },
  table: { showHeader: true },
};
