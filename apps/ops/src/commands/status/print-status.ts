import {
  type DatabaseStatus,
  describeAge,
  describeBytes,
  describeCount,
  type FeedReader,
  type QueueStatus,
  type Reading,
  type Status,
  toSeconds,
} from "@booking-events/operations";
import { version } from "@booking-events/runtime";
import type { Output } from "../../context.ts";
import type { Column } from "../../terminal/format-table.ts";
import { printHeading, printLine, printTable, printWrapped, screenWidth } from "../../terminal/print.ts";

const maxPartners = 10;
const maxCodes = 5;
const maxReaders = 5;
const labelWidth = 14;

/** Prints one screen. */
export function printStatus(output: Output, status: Status, concerns: string[]): void {
  printHeading(output, `booking-events ${version}`.padEnd(screenWidth - 20) + toSeconds(status.at));
  const { queue, database } = status;
  const fields = {
    Redis: describe(queue, describeRedis),
    PostgreSQL: describe(database, describePostgres),
    Ingests: describe(queue, ({ ingestCount }) => String(ingestCount ?? "unknown")),
    Workers: describe(queue, describeWorkers),
    Queue: describe(queue, (value) => describeQueue(value, status.at)),
    "Dead letters": describe(database, describeDeadLetters),
    Log: describe(database, describeLog),
    Readers: describe(database, describeReaders),
  };
  for (const [label, text] of Object.entries(fields)) printWrapped(output, label.padEnd(labelWidth), text);
  if ("value" in database && database.value.data !== null) printPartners(output, status, database.value.data.rates);
  printLine(output);
  printConcerns(output, concerns);
}

function describe<Value>(reading: Reading<Value>, describeValue: (value: Value) => string): string {
  return "value" in reading ? describeValue(reading.value) : "unknown";
}

function describeRedis({ redis }: QueueStatus): string {
  const { version: redisVersion, isAppendOnly, appendFsync, evictionPolicy, usedBytes, maxBytes } = redis;
  const limit = maxBytes === 0 ? "without a limit" : `of ${describeBytes(maxBytes)}`;
  return [
    redisVersion,
    `appendonly ${isAppendOnly ? "yes" : "no"}`,
    `appendfsync ${appendFsync ?? "unknown"}`,
    evictionPolicy,
    `memory ${describeBytes(usedBytes)} ${limit}`,
  ].join(", ");
}

function describePostgres({ settings, migrations }: DatabaseStatus): string {
  const { version: postgresVersion, fsync, synchronousCommit, bytes } = settings;
  return [
    postgresVersion.split(" ", 1)[0],
    `fsync ${fsync}`,
    `synchronous_commit ${synchronousCommit}`,
    describeBytes(bytes),
    `migration ${migrations.last ?? "none"}`,
  ].join(", ");
}

function describeWorkers({ workers }: QueueStatus): string {
  const versions = [...Map.groupBy(workers, (worker) => worker.version)].map(
    ([workerVersion, { length }]) => `${length} of version ${workerVersion}`,
  );
  return versions.length === 0 ? "none" : versions.join(", ");
}

function describeQueue({ counts, isPaused, oldestQueuedAt, drainMs, shardCount }: QueueStatus, at: Date): string {
  const { waiting, held, delayed } = counts;
  return [
    ...(isPaused ? ["paused"] : []),
    ...(shardCount === 1 ? [] : [`${shardCount} shards`]),
    `${waiting} waiting`,
    `${held} held`,
    `${delayed} delayed`,
    ...(oldestQueuedAt === null ? [] : [`oldest ${describeAge(at.getTime() - oldestQueuedAt.getTime())}`]),
    ...(waiting === 0 || drainMs === null ? [] : [describeDrain(drainMs)]),
  ].join(", ");
}

function describeDrain(drainMs: number): string {
  return Number.isFinite(drainMs) ? `empty in about ${describeAge(drainMs)}` : "not getting shorter";
}

function describeDeadLetters({ data }: DatabaseStatus): string {
  if (data === null) return "unknown";
  const codes = data.deadLetters.slice(0, maxCodes).map(({ code, count }) => `${count} × ${code}`);
  const more = data.deadLetters.length - codes.length;
  return codes.length === 0 ? "none" : [...codes, ...(more > 0 ? [`${more} more codes`] : [])].join(", ");
}

function describeLog({ data }: DatabaseStatus): string {
  if (data === null) return "unknown";
  const { partitionsUntil } = data;
  return partitionsUntil === null
    ? "no partition of this month"
    : `partitions until ${partitionsUntil.toISOString().slice(0, 10)}`;
}

function describeReaders({ data }: DatabaseStatus): string {
  if (data === null) return "unknown";
  const shown = data.feedReaders.slice(0, maxReaders).map(describeReader);
  const more = data.feedReaders.length - shown.length;
  return shown.length === 0 ? "none" : [...shown, ...(more > 0 ? [`${more} more`] : [])].join(", ");
}

function describeReader({ name, lagChanges, lagMs, parked, dead, breakerOpenedAt, pausedAt }: FeedReader): string {
  const remarks = [
    ...(pausedAt === null ? [] : ["paused"]),
    ...(breakerOpenedAt === null ? [] : ["failing"]),
    ...(parked === 0 ? [] : [`${parked} parked`]),
    ...(dead === 0 ? [] : [`${dead} dead`]),
  ];
  const place = lagMs === 0 ? "up to date" : `${describeCount(lagChanges, "change")} behind`;
  return `${name} ${place}${remarks.length === 0 ? "" : ` (${remarks.join(", ")})`}`;
}

type Rates = NonNullable<DatabaseStatus["data"]>["rates"];

function printPartners(output: Output, { at, lastHeardOf }: Status, { partners, windowMs }: Rates): void {
  const events = new Map(partners.map((rate) => [rate.partner, rate.events]));
  const names = [...new Set([...events.keys(), ...lastHeardOf.keys()])];
  if (names.length === 0) return;
  const describeLast = (lastAt: Date | null | undefined) => {
    if (lastAt === undefined) return "";
    return lastAt === null ? "unknown" : `${describeAge(at.getTime() - lastAt.getTime())} ago`;
  };
  const columns: Column<string>[] = [
    { header: "PARTNER", value: (name) => name },
    {
      header: `EVENTS A MINUTE (LAST ${describeAge(windowMs).toUpperCase()})`,
      value: (name) => (((events.get(name) ?? 0) / windowMs) * 60_000).toFixed(1),
    },
    { header: "LAST HEARD OF", value: (name) => describeLast(lastHeardOf.get(name)) },
  ];
  printLine(output);
  printTable(output, columns, names.slice(0, maxPartners), screenWidth);
  if (names.length > maxPartners) printLine(output, `and ${names.length - maxPartners} more (--json shows all)`);
}

function printConcerns(output: Output, concerns: string[]): void {
  if (concerns.length === 0) printLine(output, "Nothing needs attention.");
  else printHeading(output, "Needs attention");
  for (const concern of concerns) printWrapped(output, "- ", concern);
}
