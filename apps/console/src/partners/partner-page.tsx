import {
  countDaysKept,
  describeQuota,
  type FieldTotal,
  type ListedPartner,
  type ListedSecret,
  type RecordedRefusal,
  type Week,
} from "@booking-events/operations";
import type { VNode } from "preact";
import { EventLink } from "../events/event-link.tsx";
import { Badge } from "../page/badge.tsx";
import { BarChart } from "../page/chart.tsx";
import { ConfirmForm } from "../page/confirm-form.tsx";
import { Facts } from "../page/facts.tsx";
import { Layout } from "../page/layout.tsx";
import { formatNumber } from "../page/numbers.ts";
import { paths } from "../page/paths.tsx";
import { RunbookLink } from "../page/runbook-link.tsx";
import { Card, Section } from "../page/section.tsx";
import { type Column, Empty, Table, TableSection } from "../page/table.tsx";
import { Id, Text } from "../page/text.tsx";
import { formatDayAndClock, Time } from "../page/time.tsx";
import { PartnerState } from "./partners-page.tsx";

interface PartnerPageProps {
  partner: ListedPartner;
  /** This and the next two: null if it could not be read, which a notice says. */
  week: Week | null;
  refusals: readonly RecordedRefusal[] | null;
  warnings: readonly FieldTotal[] | null;
}

const maxRefusals = 50;

export function PartnerPage({ partner, week, refusals, warnings }: PartnerPageProps): VNode {
  return (
    <Layout
      title={partner.id}
      intro={<Text value={partner.name} />}
      actions={
        <>
          <Hold partner={partner} />
          <Export id={partner.id} />
        </>
      }
    >
      <Card>
        <Facts facts={toFacts(partner)} />
      </Card>
      <Section title="Rhythm" hint="Accepted events in the last week, by the hour in UTC, without dry runs.">
        {week === null ? <Empty>Unknown.</Empty> : <Rhythm week={week} />}
      </Section>
      <Refusals refusals={refusals} />
      <TableSection
        title="Warnings"
        id="warnings"
        hint={`What accepted events were warned of in the last ${countDaysKept} days, most frequent first.`}
        actions={<RunbookLink section="PartnerWarningsJumped" />}
        rows={warnings ?? []}
        columns={warningColumns}
        empty={warnings === null ? "Unknown." : "None."}
      />
      <TableSection
        title="Secrets"
        id="secrets"
        hint="New ones come from the command line: ops partners rotate."
        rows={partner.secrets}
        columns={secretColumns}
        empty="It has none, and can't send events."
      />
    </Layout>
  );
}

function Rhythm({ week }: { week: Week }): VNode {
  const { accepted, refused, acceptedWeekBefore, refusedWeekBefore } = week;
  return (
    <>
      <p>
        {formatNumber(accepted)} accepted and {formatNumber(refused)} refused; the week before,{" "}
        {formatNumber(acceptedWeekBefore)} and {formatNumber(refusedWeekBefore)}.
      </p>
      <BarChart
        title="Events an hour"
        bars={week.hours.map((hour) => ({
          label: formatDayAndClock(hour.at),
          value: hour.accepted,
          weekBefore: hour.acceptedWeekBefore,
        }))}
      />
    </>
  );
}

function toFacts(partner: ListedPartner) {
  const query = new URLSearchParams({ partner: partner.id });
  const { kinds, rateLimit, bytesPerDay, bytesToday, country } = partner;
  const used = bytesToday === undefined ? "" : `${describeQuota(bytesToday)} of `;
  return [
    ["State", <PartnerState partner={partner} />],
    ["May send", kinds.join(", ") || "nothing"],
    ["Rate limit", `${formatNumber(rateLimit.perSecond)} a second, bursts of ${formatNumber(rateLimit.burst)}`],
    ["Quota today", `${used}${describeQuota(bytesPerDay)}`],
    ["Phones without a country are of", country],
    ["Events", <a href={`/events?${query}`}>What it has sent</a>],
    ["Bookings", <a href={`/restore?${query}`}>Restore…</a>],
  ] as const;
}

function Export({ id }: { id: string }): VNode {
  return (
    <ConfirmForm action={`${paths.partner(id)}/bookings.csv`} verb="Export">
      <p>
        All its bookings as CSV: references, states, times, and the days and places of trips, without the other values.
        It is recorded in the audit. For events, for a time and for JSON lines, there is <code>ops export</code>.
      </p>
    </ConfirmForm>
  );
}

function Hold({ partner: { id, held } }: { partner: ListedPartner }): VNode {
  const action = `${paths.partner(id)}/${held ? "release" : "hold"}`;
  return held ? (
    <ConfirmForm action={action} verb="Release">
      <p>Its events are accepted again. What its sender has kept comes now.</p>
    </ConfirmForm>
  ) : (
    <ConfirmForm action={action} verb="Hold">
      <p>
        Its events are answered with 503 and Retry-After until you release it, so its sender keeps them. What it has
        sent already is applied, and its questions are answered.
      </p>
    </ConfirmForm>
  );
}

function Refusals({ refusals }: Pick<PartnerPageProps, "refusals">): VNode {
  const reasons = [...Map.groupBy(refusals ?? [], ({ code }) => code)]
    .map(([code, all]) => ({ code, count: all.length, last: all[0]?.at ?? null, violations: topViolations(all) }))
    .sort((one, other) => other.count - one.count);
  return (
    <Section
      title="Refusals"
      id="refusals"
      hint="Of the last seven days, as far as they are recorded: the newest 250."
      actions={<RunbookLink section="PartnerRefusalsJumped" />}
    >
      <Table
        caption="Reasons"
        rows={reasons}
        columns={[
          { title: "Reason", isName: true, cell: ({ code }) => code },
          { title: "Requests", isNumber: true, cell: ({ count }) => count },
          { title: "Fields", isWide: true, cell: ({ violations }) => violations || <span class="faint">–</span> },
          { title: "Last", cell: ({ last }) => last },
        ]}
        empty={refusals === null ? "Unknown." : "None is recorded."}
      />
      {reasons.length > 0 && (
        <details class="fold">
          <summary>The newest {Math.min(maxRefusals, refusals?.length ?? 0)}</summary>
          <Table
            caption="Refused requests"
            isCaptionHidden
            rows={(refusals ?? []).slice(0, maxRefusals)}
            columns={refusalColumns}
            empty="None."
          />
        </details>
      )}
    </Section>
  );
}

/** The fields and rules that were violated most often. */
function topViolations(refusals: readonly RecordedRefusal[]): string {
  const counts = [
    ...Map.groupBy(
      refusals.flatMap(({ violations }) => violations),
      (violation) => violation,
    ),
  ]
    .map(([violation, { length }]) => ({ violation, length }))
    .sort((one, other) => other.length - one.length);
  const shown = counts.slice(0, 4).map(({ violation, length }) => `${violation} (${formatNumber(length)})`);
  return [...shown, ...(counts.length > 4 ? [`${counts.length - 4} more`] : [])].join(", ");
}

const refusalColumns: Column<RecordedRefusal>[] = [
  { title: "Time", isName: true, cell: ({ at }) => at },
  { title: "Status", isNumber: true, cell: ({ status }) => status },
  { title: "Why", isWide: true, cell: ({ code, violations }) => [code, ...violations].join(" ") },
  { title: "Kind", cell: ({ kind }) => kind },
  { title: "Secret", cell: ({ secretId }) => secretId },
  { title: "Address", cell: ({ ip }) => ip },
  { title: "Request", cell: ({ requestId }) => <Id value={requestId} /> },
];

const warningColumns: Column<FieldTotal>[] = [
  { title: "Field", isName: true, isWide: true, cell: ({ field }) => field || <span class="faint">the request</span> },
  { title: "Warning", cell: ({ code }) => code },
  { title: "Events", isNumber: true, cell: ({ count }) => count },
  { title: "First", cell: ({ firstAt }) => firstAt },
  { title: "Last", cell: ({ lastAt }) => lastAt },
  {
    title: "Last event",
    cell: ({ lastEventId }) =>
      lastEventId === null ? <span class="faint">a dry run</span> : <EventLink id={lastEventId} />,
  },
];

const secretColumns: Column<ListedSecret>[] = [
  { title: "Secret", isName: true, cell: ({ id }) => id },
  { title: "State", cell: (secret) => <SecretState secret={secret} /> },
  { title: "Created", cell: ({ createdAt }) => new Date(createdAt) },
  {
    title: "Expires",
    cell: ({ expiresAt, revoked }) => (revoked ? "" : <Time at={expiresAt === null ? null : new Date(expiresAt)} />),
  },
  {
    title: "Last used",
    isWide: true,
    cell: ({ lastUsedAt }) =>
      lastUsedAt === undefined ? <span class="faint">unknown</span> : <Time at={lastUsedAt} />,
  },
];

function SecretState({ secret: { valid, revoked } }: { secret: ListedSecret }): VNode {
  if (valid) return <Badge tone="good">valid</Badge>;
  return <Badge tone="quiet">{revoked ? "revoked" : "expired"}</Badge>;
}
