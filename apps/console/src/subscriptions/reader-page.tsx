import {
  describeBehind,
  type FeedDeadLetter,
  type FeedReader,
  type ParkedDelivery,
  type Subscription,
} from "@booking-events/operations";
import type { VNode } from "preact";
import { ReaderState } from "../overview/overview-page.tsx";
import { ConfirmForm } from "../page/confirm-form.tsx";
import { type Fact, Facts } from "../page/facts.tsx";
import { Layout } from "../page/layout.tsx";
import { formatNumber } from "../page/numbers.ts";
import { paths } from "../page/paths.ts";
import { RunbookLink } from "../page/runbook-link.tsx";
import { Card, Section } from "../page/section.tsx";
import { type Stat, Stats } from "../page/stats.tsx";
import { type Column, Table } from "../page/table.tsx";
import { Id, Text } from "../page/text.tsx";
import { Time } from "../page/time.tsx";
import type { View } from "../page/view.ts";
import { describeTarget, SubscriptionState } from "./subscriptions-page.tsx";

interface ReaderRow {
  /** Null: it is a program that reads by itself. */
  subscription: Subscription | null;
  /** Undefined: it has not begun. */
  reader: FeedReader | undefined;
}

interface ReaderPageProps {
  view: View;
  name: string;
  row: ReaderRow;
  letters: readonly FeedDeadLetter[];
  parked: readonly ParkedDelivery[];
}

/** A subscription, or another reader of the feed. */
export function ReaderPage({ view, name, row, letters, parked }: ReaderPageProps): VNode {
  const { subscription, reader } = row;
  return (
    <Layout
      view={view}
      title={name}
      intro={subscription === null ? "A program that follows the feed by itself." : "A subscription."}
      actions={subscription && <Actions view={view} subscription={subscription} />}
    >
      <Card>
        <Facts facts={toFacts(view, row)} />
      </Card>
      {reader !== undefined && <Stats stats={toStats(reader)} />}
      <Section
        title="Dead letters"
        id="dead-letters"
        hint="Bookings that have used up their attempts. Later changes of them wait behind, or take their place."
        actions={<LetterActions view={view} name={name} letters={letters} />}
      >
        <Table
          caption="Dead letters"
          isCaptionHidden
          rows={letters}
          columns={letterColumns(view, name)}
          empty="There are none."
        />
      </Section>
      <Section title="Parked" id="parked" hint="Bookings that have failed, and wait for their next attempt.">
        <Table
          caption="Parked bookings"
          isCaptionHidden
          rows={parked}
          columns={parkedColumns(view)}
          empty="No booking waits for another attempt."
        />
      </Section>
    </Layout>
  );
}

function toFacts(view: View, { subscription, reader }: ReaderRow): Fact[] {
  if (subscription === null)
    return [
      ["State", reader && <ReaderState reader={reader} />],
      ["Belongs to", reader?.owner],
      ["Last seen", reader && <Time at={reader.seenAt} now={view.now} />],
    ];
  const { url, pausedAt, pausedBy, pauseReason, previousKeyUntil } = subscription;
  return [
    ["State", <SubscriptionState row={{ subscription, reader }} />],
    ["Posted to", <Text value={describeTarget(url)} />],
    ["Delivery", describeDelivery(subscription)],
    ["Only", describeFilter(subscription)],
    ["Paused", pausedAt && <Time at={pausedAt} now={view.now} />],
    ["Paused by", pausedBy && <Text value={pausedBy} />],
    ["Why", pauseReason && <Text value={pauseReason} limit={300} />],
    ["Old key in use until", previousKeyUntil && <Time at={previousKeyUntil} now={view.now} />],
    ["Added", <Time at={subscription.createdAt} now={view.now} />],
    ["Added by", <Text value={subscription.createdBy} />],
  ];
}

function describeDelivery({ mode, payload, signature }: Subscription): string {
  return mode === null ? `${payload}, pulled with a token` : `${payload}, ${mode}, signed by ${signature}`;
}

function describeFilter({ partners, changes, countries, arrivalFromDays, arrivalToDays }: Subscription): string | null {
  const parts = [
    ...(partners === null ? [] : [`partners ${partners.join(", ")}`]),
    ...(changes === null ? [] : [`changes ${changes.join(", ")}`]),
    ...(countries === null ? [] : [`destinations ${countries.join(", ")}`]),
    ...(arrivalFromDays === null ? [] : [`arrivals from ${arrivalFromDays} to ${arrivalToDays} days after`]),
  ];
  return parts.join("; ") || null;
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

function Actions({ view, subscription }: { view: View; subscription: Subscription }): VNode {
  const { name, url, pausedAt } = subscription;
  const path = paths.subscription(name);
  return (
    <>
      {url !== null && (
        <ConfirmForm view={view} role="operator" action={`${path}/replay`} verb="Post again">
          <p>All changes since a time, for a subscriber that has lost them. Each has the same webhook-id as before.</p>
          <label>
            Since
            <input name="since" required placeholder="2h, 02:00 or 2026-11-20T12:00:00Z" maxLength={40} />
            <small>In UTC, or how long ago. Those of the five minutes before come too.</small>
          </label>
        </ConfirmForm>
      )}
      {pausedAt === null ? (
        <ConfirmForm view={view} role="operator" action={`${path}/pause`} verb="Pause">
          <p>It gets nothing until it is resumed, and keeps its place. A subscriber that pulls is refused meanwhile.</p>
          <label>
            Why
            <input name="reason" maxLength={200} />
          </label>
        </ConfirmForm>
      ) : (
        <ConfirmForm view={view} role="operator" action={`${path}/resume`} verb="Resume">
          <p>It is delivered to again, from where it was.</p>
        </ConfirmForm>
      )}
    </>
  );
}

function LetterActions({ view, name, letters }: Pick<ReaderPageProps, "view" | "name" | "letters">): VNode {
  return (
    <>
      <RunbookLink view={view} section="FeedDeadLetters" />
      {letters.length > 0 && (
        <ConfirmForm
          view={view}
          role="operator"
          action={`${paths.subscription(name)}/dead-letters/replay`}
          verb="Try all again"
        >
          <p>All of its dead letters are due at once, with all of their attempts. Fix the cause before.</p>
        </ConfirmForm>
      )}
    </>
  );
}

type Delivery = Omit<FeedDeadLetter, "diedAt">;

const bookingColumns: Column<Delivery>[] = [
  { title: "Change", isName: true, isNumber: true, cell: ({ changeId }) => changeId },
  {
    title: "Booking",
    isWide: true,
    cell: ({ partner, reference, bookingId }) =>
      partner === null || reference === null ? (
        <Id value={bookingId} />
      ) : (
        <a href={paths.booking(partner, reference)}>
          {partner} <Text value={reference} limit={60} />
        </a>
      ),
  },
  { title: "Was", cell: ({ change }) => change ?? <span class="faint">no longer in the feed</span> },
  { title: "Attempts", isNumber: true, cell: ({ attempts }) => formatNumber(attempts) },
  { title: "Failure", cell: ({ failure }) => <Text value={failure ?? "unknown"} limit={60} /> },
];

const parkedColumns = (view: View): Column<ParkedDelivery>[] => [
  ...bookingColumns,
  { title: "First failed", cell: ({ firstFailedAt }) => <Time at={firstFailedAt} now={view.now} /> },
  { title: "Next attempt", cell: ({ retryAt }) => <Time at={retryAt} now={view.now} /> },
];

const letterColumns = (view: View, name: string): Column<FeedDeadLetter>[] => [
  ...bookingColumns,
  { title: "Died", cell: ({ diedAt }) => <Time at={diedAt} now={view.now} /> },
  ...(view.roles.includes("operator")
    ? [
        {
          title: "Do",
          cell: ({ changeId }: FeedDeadLetter) => <OneLetter view={view} name={name} changeId={changeId} />,
        },
      ]
    : []),
];

function OneLetter({ view, name, changeId }: { view: View; name: string; changeId: number }): VNode {
  const path = `${paths.subscription(name)}/dead-letters`;
  const fields = { change: String(changeId) };
  return (
    <div class="actions">
      <ConfirmForm view={view} role="operator" action={`${path}/replay`} verb="Try again" fields={fields}>
        <p>Change {changeId} is due at once, with all of its attempts.</p>
      </ConfirmForm>
      <ConfirmForm view={view} role="operator" action={`${path}/discard`} verb="Discard" fields={fields} isDangerous>
        <p>Change {changeId} counts as delivered. Nobody is told of it again.</p>
      </ConfirmForm>
    </div>
  );
}
