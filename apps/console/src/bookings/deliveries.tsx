import type { BookingChange, BookingDelivery } from "@booking-events/operations";
import type { VNode } from "preact";
import { Badge } from "../page/badge.tsx";
import { paths } from "../page/paths.ts";
import { type Column, Empty, Table } from "../page/table.tsx";
import { Text } from "../page/text.tsx";
import { Time } from "../page/time.tsx";
import type { View } from "../page/view.ts";
import { describeDelivery } from "./describe-delivery.ts";

interface DeliveriesProps {
  view: View;
  changes: readonly BookingChange[];
  deliveries: readonly BookingDelivery[];
}

export function Deliveries({ view: { now }, changes, deliveries }: DeliveriesProps): VNode {
  const newest = changes[0];
  if (newest === undefined) return <Empty>The booking has had no change that readers are told of.</Empty>;
  const columns: Column<BookingDelivery>[] = [
    {
      title: "Reader",
      isName: true,
      cell: ({ reader, isSubscription }) =>
        isSubscription ? <a href={paths.subscription(reader)}>{reader}</a> : <Text value={reader} />,
    },
    {
      title: "State",
      cell: (delivery) => {
        const { state, tone } = describeDelivery(delivery, newest.id);
        return <Badge tone={tone}>{state}</Badge>;
      },
    },
    {
      title: "Changes done",
      isNumber: true,
      cell: ({ doneId }) => `${changes.filter(({ id }) => id <= doneId).length} of ${changes.length}`,
    },
    { title: "Attempts", isNumber: true, cell: ({ attempts, changeId }) => (changeId === null ? "" : attempts) },
    { title: "Failure", cell: ({ failure }) => failure && <Text value={failure} /> },
    { title: "Failed last", cell: ({ lastFailedAt }) => <Time at={lastFailedAt} now={now} none="" /> },
    { title: "Next attempt", cell: ({ retryAt }) => <Time at={retryAt} now={now} none="" /> },
  ];
  return (
    <Table
      caption={`Its newest change is ${newest.change}, number ${newest.id} in the feed`}
      columns={columns}
      rows={deliveries}
      empty="Nobody reads the feed."
    />
  );
}
