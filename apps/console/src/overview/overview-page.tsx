import {
  describeAge,
  describeBehind,
  describeBytes,
  describeReaderState,
  type FeedReader,
  type PartnerTraffic,
} from "@booking-events/operations";
import type { VNode } from "preact";
import { Badge } from "../page/badge.tsx";
import { BarChart } from "../page/chart.tsx";
import { Layout } from "../page/layout.tsx";
import { formatNumber, formatRate, formatShare } from "../page/numbers.ts";
import { PartnerLink, ReaderLink } from "../page/paths.tsx";
import { Section } from "../page/section.tsx";
import { type Stat, Stats } from "../page/stats.tsx";
import { type Column, TableSection } from "../page/table.tsx";
import { formatClock, Time } from "../page/time.tsx";
import { Concerns } from "./concerns.tsx";
import { maxPartners, type Overview } from "./read-overview.ts";

export function OverviewPage({ overview }: { overview: Overview }): VNode {
  return (
    <Layout title="Overview" intro="Does it get through?">
      <div data-live="/live/overview">
        <OverviewPart overview={overview} />
      </div>
    </Layout>
  );
}

/** What is read again and again. */
export function OverviewPart({ overview }: { overview: Overview }): VNode {
  const { at, status, concerns, traffic, day, arrivals } = overview;
  const readers = "value" in status.database ? (status.database.value.data?.feedReaders ?? []) : [];
  return (
    <>
      <Concerns concerns={concerns} unresolvedGuests={arrivals?.unresolved ?? 0} />
      <Stats stats={toStats(overview)} />
      {day !== null && (
        <Section title="Events a minute" hint="Of the last 24 hours, by half an hour, as a sample of the log shows.">
          <BarChart
            title="Events a minute"
            bars={day.map((beat) => ({
              label: formatClock(beat.at),
              value: beat.perMinute,
              weekBefore: beat.perMinuteLastWeek,
            }))}
          />
        </Section>
      )}
      {traffic !== null && (
        <TableSection
          title="Partners"
          hint="The last quarter of an hour, and the same one a week before, estimated by the first 100 events of each."
          rows={traffic}
          columns={partnerColumns(overview)}
          empty="No partner has sent anything within a week."
        >
          {traffic.length === maxPartners && (
            <p class="hint">
              These are the first {maxPartners}. <a href="/partners">All partners</a>
            </p>
          )}
        </TableSection>
      )}
      <TableSection
        title="Readers"
        hint="Programs that follow the changes of bookings, and subscriptions."
        rows={readers.slice(0, maxReaders)}
        columns={readerColumns}
        empty="Nothing reads the feed."
      />
      <p class="as-of">
        As of <time dateTime={at.toISOString()}>{formatClock(at, true)} UTC</time>
      </p>
    </>
  );
}

const maxReaders = 20;

/** A contact that can't be read can be asked for. Of a dead or waiting event, nobody knows what it says. */
function toneOf({ unresolved, dead, waiting }: NonNullable<Overview["arrivals"]>): Stat["tone"] {
  if (dead + waiting > 0) return "bad";
  return unresolved > 0 ? "warn" : undefined;
}

function toStats({ at, status, traffic, arrivals }: Overview): Stat[] {
  const queue = "value" in status.queue ? status.queue.value : null;
  const data = "value" in status.database ? status.database.value.data : null;
  const dead = data?.deadLetters.reduce((sum, { count }) => sum + count, 0) ?? null;
  const oldestMs = queue?.oldestQueuedAt ? at.getTime() - queue.oldestQueuedAt.getTime() : 0;
  const rate = traffic?.reduce((sum, { perMinute }) => sum + perMinute, 0) ?? null;
  return [
    {
      name: "Guests unresolved",
      value: arrivals === null ? null : formatNumber(arrivals.unresolved),
      detail: arrivals === null ? undefined : `of ${formatNumber(arrivals.arriving)} who arrive within 48 hours`,
      tone: arrivals === null ? undefined : toneOf(arrivals),
      to: "/arrivals",
    },
    { name: "Events a minute", value: rate === null ? null : formatRate(rate), to: "/events" },
    {
      name: "In the queue",
      value: queue === null ? null : formatNumber(queue.counts.waiting + queue.counts.held + queue.counts.delayed),
      detail: queue === null ? undefined : describeCounts(queue.counts) || undefined,
      to: "/stuck",
    },
    {
      name: "Oldest event waits",
      value: queue === null ? null : queue.oldestQueuedAt === null ? "none" : describeAge(oldestMs),
      tone: oldestMs > 60_000 ? "bad" : undefined,
      to: "/stuck",
    },
    {
      name: "Dead letters",
      value: dead === null ? null : formatNumber(dead),
      detail: dead === null ? undefined : (data?.deadLetters[0]?.code ?? "none is open"),
      tone: dead ? "bad" : undefined,
      to: "/stuck",
    },
    {
      name: "Processes",
      value: queue === null ? null : `${queue.ingestCount ?? "?"} + ${queue.workers.length}`,
      detail: "ingest + worker",
    },
    {
      name: "Redis",
      value: queue === null ? null : describeBytes(queue.redis.usedBytes),
      detail: queue?.redis.maxBytes ? `of ${describeBytes(queue.redis.maxBytes)}` : undefined,
    },
  ];
}

function describeCounts(counts: { waiting: number; held: number; delayed: number }): string {
  const { waiting, held, delayed } = counts;
  return Object.entries({ waiting, held, delayed })
    .filter(([, count]) => count > 0)
    .map(([name, count]) => `${formatNumber(count)} ${name}`)
    .join(", ");
}

function partnerColumns({ status }: Overview): Column<PartnerTraffic>[] {
  return [
    { title: "Partner", isName: true, isWide: true, cell: ({ partner }) => <PartnerLink id={partner} /> },
    { title: "A minute", isNumber: true, cell: ({ perMinute }) => formatRate(perMinute) },
    { title: "A week before", isNumber: true, cell: ({ perMinuteLastWeek }) => formatRate(perMinuteLastWeek) },
    { title: "Warned", isNumber: true, cell: ({ warnedShare }) => <Share share={warnedShare} /> },
    { title: "Refused", isNumber: true, cell: (traffic) => <Share share={refusedShareOf(traffic)} /> },
    {
      title: "Last heard of",
      cell: ({ partner }) => <Time at={status.lastHeardOf.get(partner) ?? null} none="not within a week" />,
    },
  ];
}

/** Only the newest refusals of a partner are recorded, so it may be more. */
function refusedShareOf({ refused, perMinute }: PartnerTraffic): number | null {
  const accepted = perMinute * 15;
  return refused === null || refused + accepted === 0 ? null : refused / (refused + accepted);
}

function Share({ share }: { share: number | null }): VNode {
  if (share === null) return <span class="faint">–</span>;
  if (share < 0.01) return <span>{formatShare(share)}</span>;
  return <Badge tone={share >= 0.2 ? "bad" : "warn"}>{formatShare(share)}</Badge>;
}

const readerColumns: Column<FeedReader>[] = [
  { title: "Reader", isName: true, isWide: true, cell: ({ name }) => <ReaderLink name={name} /> },
  { title: "State", cell: (reader) => <ReaderState reader={reader} /> },
  { title: "Behind", cell: (reader) => <span class="nowrap">{describeBehind(reader) || "–"}</span> },
  { title: "Parked", isNumber: true, cell: ({ parked }) => parked },
  { title: "Dead", isNumber: true, cell: ({ dead }) => dead },
];

export function ReaderState({ reader }: { reader: FeedReader }): VNode {
  const state = describeReaderState(reader);
  const tone =
    reader.hasMissedChanges || reader.breakerOpenedAt !== null
      ? "bad"
      : reader.pausedAt !== null || reader.lagMs > 60_000
        ? "warn"
        : "good";
  return <Badge tone={tone}>{state}</Badge>;
}
