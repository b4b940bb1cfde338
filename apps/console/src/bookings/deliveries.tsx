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
    { title: "What failed", cell: (delivery) => <Failure delivery={delivery} now={now} /> },
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

function Failure({ delivery, now }: { delivery: BookingDelivery; now: Date }): VNode | null {
  const { changeId, attempts, failure, lastFailedAt, retryAt } = delivery;
  if (changeId === null) return null;
  return (
    <>
      {attempts === 1 ? "1 attempt" : `${attempts} attempts`}
      {failure !== null && (
        <>
          : <Text value={failure} />
        </>
      )}
      {lastFailedAt !== null && (
        <>
          , the last <Time at={lastFailedAt} now={now} />
        </>
      )}
      {retryAt !== null && (
        <>
          , the next <Time at={retryAt} now={now} />
        </>
      )}
    </>
  );
}
