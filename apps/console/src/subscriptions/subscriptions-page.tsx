import { describeBehind, describeTarget, type FeedReader, type SubscriptionRow } from "@booking-events/operations";
import type { VNode } from "preact";
import { ReaderState } from "../overview/overview-page.tsx";
import { Badge } from "../page/badge.tsx";
import { Layout } from "../page/layout.tsx";
import { formatNumber } from "../page/numbers.ts";
import { ReaderLink } from "../page/paths.tsx";
import { type Column, Table, TableSection } from "../page/table.tsx";

interface SubscriptionsPageProps {
  subscriptions: readonly SubscriptionRow[];
  /** Those that are no subscriptions. */
  readers: readonly FeedReader[];
}

export function SubscriptionsPage({ subscriptions, readers }: SubscriptionsPageProps): VNode {
  return (
    <Layout title="Subscriptions" intro="Who gets the changes of bookings, and how far each is behind.">
      <Table
        caption="Subscriptions"
        rows={subscriptions}
        columns={subscriptionColumns}
        empty="There are no subscriptions. Add one with: ops subscriptions add"
      />
      <TableSection
        title="Other readers"
        hint="Programs that follow the feed by themselves."
        rows={readers}
        columns={readerColumns}
        empty="No program follows the feed by itself."
      />
    </Layout>
  );
}

export function SubscriptionState({ row: { subscription, reader } }: { row: SubscriptionRow }): VNode {
  if (subscription.pausedAt !== null) return <Badge tone="warn">paused</Badge>;
  if (reader === undefined) return <Badge tone="quiet">has not begun</Badge>;
  return <ReaderState reader={reader} />;
}

const subscriptionColumns: Column<SubscriptionRow>[] = [
  { title: "Subscription", isName: true, cell: ({ subscription }) => <ReaderLink name={subscription.name} /> },
  { title: "Posted to", isWide: true, cell: ({ subscription }) => describeTarget(subscription) },
  { title: "State", cell: (row) => <SubscriptionState row={row} /> },
  { title: "Behind", cell: ({ reader }) => <Behind reader={reader} /> },
  { title: "Parked", isNumber: true, cell: ({ reader }) => reader?.parked ?? 0 },
  { title: "Dead", isNumber: true, cell: ({ reader }) => <Dead count={reader?.dead ?? 0} /> },
];

const readerColumns: Column<FeedReader>[] = [
  { title: "Reader", isName: true, isWide: true, cell: ({ name }) => <ReaderLink name={name} /> },
  { title: "State", cell: (reader) => <ReaderState reader={reader} /> },
  { title: "Behind", cell: (reader) => <Behind reader={reader} /> },
  { title: "Last seen", cell: ({ seenAt }) => seenAt },
  { title: "Parked", isNumber: true, cell: ({ parked }) => parked },
  { title: "Dead", isNumber: true, cell: ({ dead }) => <Dead count={dead} /> },
];

function Behind({ reader }: { reader: FeedReader | undefined }): VNode {
  return <span class="nowrap">{(reader && describeBehind(reader)) || "–"}</span>;
}

function Dead({ count }: { count: number }): VNode {
  return count === 0 ? <span>0</span> : <Badge tone="bad">{formatNumber(count)}</Badge>;
}
