import type { BookingDelivery, Proof } from "@booking-events/operations";
import type { VNode } from "preact";
import { Badge, type Tone } from "../page/badge.tsx";
import { ReaderLink } from "../page/paths.tsx";
import { Section } from "../page/section.tsx";
import { type Column, Empty, Table } from "../page/table.tsx";
import { Text } from "../page/text.tsx";
import { Time } from "../page/time.tsx";

export function Deliveries({ proof }: { proof: Proof }): VNode {
  return (
    <Section
      title="Who has been told"
      id="deliveries"
      hint="The readers of the feed and the subscriptions. Dealt with: delivered, or left out by a filter."
    >
      <Readers {...proof} />
    </Section>
  );
}

function Readers({ changes, deliveries }: Pick<Proof, "changes" | "deliveries">): VNode {
  const newest = changes[0];
  if (newest === undefined) return <Empty>The booking has had no change that readers are told of.</Empty>;
  const columns: Column<BookingDelivery>[] = [
    {
      title: "Reader",
      isName: true,
      cell: ({ reader, isSubscription }) => (isSubscription ? <ReaderLink name={reader} /> : reader),
    },
    {
      title: "State",
      cell: (delivery) => {
        const [state, tone] = describeDelivery(delivery, newest.id);
        return <Badge tone={tone}>{state}</Badge>;
      },
    },
    {
      title: "Changes done",
      isNumber: true,
      cell: ({ doneId }) => `${changes.filter(({ id }) => id <= doneId).length} of ${changes.length}`,
    },
    { title: "What failed", cell: (delivery) => <Failure delivery={delivery} /> },
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

/** @param newest the id of the booking's newest change in the feed */
function describeDelivery(delivery: BookingDelivery, newest: number): [state: string, tone: Tone] {
  const { isOtherPartner, diedAt, changeId, doneId, pausedAt } = delivery;
  if (diedAt !== null) return ["dead", "bad"];
  if (changeId !== null) return ["failing", "warn"];
  if (isOtherPartner) return ["not for this partner", "quiet"];
  if (doneId >= newest) return ["dealt with", "good"];
  return pausedAt === null ? ["waiting", "info"] : ["paused", "warn"];
}

function Failure({ delivery }: { delivery: BookingDelivery }): VNode | null {
  const { changeId, attempts, failure, lastFailedAt, retryAt } = delivery;
  if (changeId === null) return null;
  return (
    <>
      {attempts === 1 ? "1 attempt" : `${attempts} attempts`}: <Text value={failure ?? "unknown"} />, the last{" "}
      <Time at={lastFailedAt} none="at an unknown time" />, the next <Time at={retryAt} />
    </>
  );
}
