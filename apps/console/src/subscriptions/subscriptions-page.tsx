import { describeBehind, type FeedReader, type SubscriptionRow } from "@booking-events/operations";
import type { VNode } from "preact";
import { ReaderState } from "../overview/overview-page.tsx";
import { Badge } from "../page/badge.tsx";
import { Layout } from "../page/layout.tsx";
import { formatNumber } from "../page/numbers.ts";
import { paths } from "../page/paths.ts";
import { Section } from "../page/section.tsx";
import { type Column, Table } from "../page/table.tsx";
import { Text } from "../page/text.tsx";
import { Time } from "../page/time.tsx";
import type { View } from "../page/view.ts";

interface SubscriptionsPageProps {
  view: View;
  subscriptions: readonly SubscriptionRow[];
  /** Those that are no subscriptions. */
  readers: readonly FeedReader[];
}

export function SubscriptionsPage({ view, subscriptions, readers }: SubscriptionsPageProps): VNode {
  return (
    <Layout view={view} title="Subscriptions" intro="Who gets the changes of bookings, and how far each is behind.">
      <Table
        caption="Subscriptions"
        rows={subscriptions}
        columns={subscriptionColumns}
        empty="There are no subscriptions. Add one with: ops subscriptions add"
      />
      <Section title="Other readers" hint="Programs that follow the feed by themselves.">
        <Table
          caption="Other readers"
          isCaptionHidden
          rows={readers}
          columns={readerColumns(view)}
          empty="No program follows the feed by itself."
        />
      </Section>
    </Layout>
  );
}

export function SubscriptionState({ row: { subscription, reader } }: { row: SubscriptionRow }): VNode {
  if (subscription.pausedAt !== null) return <Badge tone="warn">paused</Badge>;
  if (reader === undefined) return <Badge tone="quiet">has not begun</Badge>;
  return <ReaderState reader={reader} />;
}

/** A query may hold a password of the subscriber's. */
export function describeTarget(url: string | null): string {
  if (url === null) return "pulls";
  const { origin, pathname } = new URL(url);
  return origin + pathname;
}

const nameCell = ({ name }: { name: string }) => (
  <a href={paths.subscription(name)}>
    <Text value={name} />
  </a>
);

const subscriptionColumns: Column<SubscriptionRow>[] = [
  { title: "Subscription", isName: true, cell: ({ subscription }) => nameCell(subscription) },
  {
    title: "Posted to",
    isWide: true,
    cell: ({ subscription }) => <Text value={describeTarget(subscription.url)} limit={80} />,
  },
  { title: "State", cell: (row) => <SubscriptionState row={row} /> },
  { title: "Behind", cell: ({ reader }) => <span class="nowrap">{(reader && describeBehind(reader)) || "–"}</span> },
  { title: "Parked", isNumber: true, cell: ({ reader }) => formatNumber(reader?.parked ?? 0) },
  { title: "Dead", isNumber: true, cell: ({ reader }) => <Dead count={reader?.dead ?? 0} /> },
];

const readerColumns = (view: View): Column<FeedReader>[] => [
  { title: "Reader", isName: true, isWide: true, cell: nameCell },
  { title: "State", cell: (reader) => <ReaderState reader={reader} /> },
  { title: "Behind", cell: (reader) => <span class="nowrap">{describeBehind(reader) || "–"}</span> },
  { title: "Last seen", cell: ({ seenAt }) => <Time at={seenAt} now={view.now} /> },
  { title: "Parked", isNumber: true, cell: ({ parked }) => formatNumber(parked) },
  { title: "Dead", isNumber: true, cell: ({ dead }) => <Dead count={dead} /> },
];

function Dead({ count }: { count: number }): VNode {
  return count === 0 ? <span>0</span> : <Badge tone="bad">{formatNumber(count)}</Badge>;
}
