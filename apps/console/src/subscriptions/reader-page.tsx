import {
  describeBehind,
  describeDelivery,
  describeFilter,
  describeTarget,
  type FeedDeadLetter,
  type FeedReader,
  type ParkedDelivery,
  type Subscription,
} from "@booking-events/operations";
import type { VNode } from "preact";
import { BookingLink } from "../events/booking-link.tsx";
import { ReaderState } from "../overview/overview-page.tsx";
import { ConfirmForm } from "../page/confirm-form.tsx";
import { type Fact, Facts } from "../page/facts.tsx";
import { Layout } from "../page/layout.tsx";
import { formatNumber } from "../page/numbers.ts";
import { paths } from "../page/paths.tsx";
import { RunbookLink } from "../page/runbook-link.tsx";
import { Card } from "../page/section.tsx";
import { type Stat, Stats } from "../page/stats.tsx";
import { type Column, TableSection } from "../page/table.tsx";
import { Id, Text } from "../page/text.tsx";
import { useRole } from "../page/view.ts";
import { SubscriptionState } from "./subscriptions-page.tsx";

interface ReaderRow {
  /** Null: it is a program that reads by itself. */
  subscription: Subscription | null;
  /** Undefined: it has not begun. */
  reader: FeedReader | undefined;
}

interface ReaderPageProps {
  name: string;
  row: ReaderRow;
  letters: readonly FeedDeadLetter[];
  parked: readonly ParkedDelivery[];
}

/** A subscription, or another reader of the feed. */
export function ReaderPage({ name, row, letters, parked }: ReaderPageProps): VNode {
  const { subscription, reader } = row;
  const mayAct = useRole("operator");
  return (
    <Layout
      title={name}
      intro={subscription === null ? "A program that follows the feed by itself." : "A subscription."}
      actions={subscription && <Actions subscription={subscription} />}
    >
      <Card>
        <Facts facts={toFacts(row)} />
      </Card>
      {reader !== undefined && <Stats stats={toStats(reader)} />}
      <TableSection
        title="Dead letters"
        id="dead-letters"
        hint="Bookings that have used up their attempts. Later changes of them wait behind, or take their place."
        actions={<LetterActions path={`${paths.subscription(name)}/dead-letters`} letters={letters} />}
        rows={letters}
        columns={letterColumns(`${paths.subscription(name)}/dead-letters`, mayAct)}
        empty="There are none."
      />
      <TableSection
        title="Parked"
        id="parked"
        hint="Bookings that have failed, and wait for their next attempt."
        rows={parked}
        columns={parkedColumns}
        empty="No booking waits for another attempt."
      />
    </Layout>
  );
}

function toFacts({ subscription, reader }: ReaderRow): Fact[] {
  if (subscription === null)
    return [
      ["State", reader && <ReaderState reader={reader} />],
      ["Belongs to", reader?.owner],
      ["Last seen", reader?.seenAt],
    ];
  const { pausedAt, pausedBy, pauseReason, previousKeyUntil } = subscription;
  return [
    ["State", <SubscriptionState row={{ subscription, reader }} />],
    ["Posted to", describeTarget(subscription)],
    ["Delivery", describeDelivery(subscription)],
    ["Filter", describeFilter(subscription)],
    ["Paused", pausedAt],
    ["Paused by", pausedBy],
    ["Why", pauseReason && <Text value={pauseReason} limit={300} />],
    ["Old key in use until", previousKeyUntil],
    ["Added", subscription.createdAt],
    ["Added by", subscription.createdBy],
  ];
}

function toStats(reader: FeedReader): Stat[] {
  const { parked, dead, lagMs, breakerOpenedAt } = reader;
  return [
    { name: "Behind", value: describeBehind(reader) || "nothing", tone: lagMs > 60_000 ? "bad" : undefined },
    { name: "Parked bookings", value: formatNumber(parked), tone: parked > 0 ? "warn" : undefined },
    { name: "Dead letters", value: formatNumber(dead), tone: dead > 0 ? "bad" : undefined },
    {
      name: "Every booking fails",
      value: breakerOpenedAt === null ? "no" : "yes",
      tone: breakerOpenedAt === null ? undefined : "bad",
    },
  ];
}

function Actions({ subscription }: { subscription: Subscription }): VNode {
  const { name, url, pausedAt } = subscription;
  const path = paths.subscription(name);
  return (
    <>
      {url !== null && (
        <ConfirmForm action={`${path}/replay`} verb="Post again">
          <p>All changes since a time, for a subscriber that has lost them. Each has the same webhook-id as before.</p>
          <label>
            Since
            <input name="since" required placeholder="2h, 02:00 or 2026-11-20T12:00:00Z" maxLength={40} />
            <small>In UTC, or how long ago. Those of the five minutes before come too.</small>
          </label>
        </ConfirmForm>
      )}
      {pausedAt === null ? (
        <ConfirmForm action={`${path}/pause`} verb="Pause">
          <p>It gets nothing until it is resumed, and keeps its place. A subscriber that pulls is refused meanwhile.</p>
          <label>
            Why
            <input name="reason" maxLength={200} />
          </label>
        </ConfirmForm>
      ) : (
        <ConfirmForm action={`${path}/resume`} verb="Resume">
          <p>It is delivered to again, from where it was.</p>
        </ConfirmForm>
      )}
    </>
  );
}

function LetterActions({ path, letters }: { path: string; letters: readonly FeedDeadLetter[] }): VNode {
  return (
    <>
      <RunbookLink section="FeedDeadLetters" />
      {letters.length > 0 && (
        <ConfirmForm action={`${path}/replay`} verb="Try all again">
          <p>All of its dead letters are due at once, with all of their attempts. Fix the cause before.</p>
        </ConfirmForm>
      )}
    </>
  );
}

type Delivery = Omit<FeedDeadLetter, "diedAt">;

const bookingColumns: Column<Delivery>[] = [
  { title: "Change", isName: true, isNumber: true, cell: ({ changeId }) => String(changeId) },
  {
    title: "Booking",
    isWide: true,
    cell: (delivery) =>
      delivery.reference === null ? (
        <Id value={delivery.bookingId} />
      ) : (
        <>
          {delivery.partner} <BookingLink {...delivery} />
        </>
      ),
  },
  { title: "Was", cell: ({ change }) => change ?? <span class="faint">no longer in the feed</span> },
  { title: "Attempts", isNumber: true, cell: ({ attempts }) => attempts },
  { title: "Failure", cell: ({ failure }) => failure ?? "unknown" },
];

const parkedColumns: Column<ParkedDelivery>[] = [
  ...bookingColumns,
  { title: "First failed", cell: ({ firstFailedAt }) => firstFailedAt },
  { title: "Next attempt", cell: ({ retryAt }) => retryAt },
];

function letterColumns(path: string, mayAct: boolean): Column<FeedDeadLetter>[] {
  const action: Column<FeedDeadLetter> = {
    title: "Do",
    cell: ({ changeId }) => <OneLetter path={path} changeId={changeId} />,
  };
  return [...bookingColumns, { title: "Died", cell: ({ diedAt }) => diedAt }, ...(mayAct ? [action] : [])];
}

function OneLetter({ path, changeId }: { path: string; changeId: number }): VNode {
  const fields = { change: String(changeId) };
  return (
    <div class="actions">
      <ConfirmForm action={`${path}/replay`} verb="Try again" fields={fields}>
        <p>Change {changeId} is due at once, with all of its attempts.</p>
      </ConfirmForm>
      <ConfirmForm action={`${path}/discard`} verb="Discard" fields={fields} isDangerous>
        <p>Change {changeId} counts as delivered. Nobody is told of it again.</p>
      </ConfirmForm>
    </div>
  );
}
