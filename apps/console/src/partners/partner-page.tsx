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
import { paths } from "../page/paths.ts";
import { RunbookLink } from "../page/runbook-link.tsx";
import { Card, Section } from "../page/section.tsx";
import { type Column, Empty, Table } from "../page/table.tsx";
import { Id, Text } from "../page/text.tsx";
import { formatDayAndClock, Time } from "../page/time.tsx";
import type { View } from "../page/view.ts";
import { PartnerState } from "./partners-page.tsx";

interface PartnerPageProps {
  view: View;
  partner: ListedPartner;
  /** This and the next two: null if it could not be read, which a notice says. */
  week: Week | null;
  refusals: readonly RecordedRefusal[] | null;
  warnings: readonly FieldTotal[] | null;
}

const maxRefusals = 50;

export function PartnerPage({ view, partner, week, refusals, warnings }: PartnerPageProps): VNode {
  return (
    <Layout
      view={view}
      title={partner.id}
      intro={<Text value={partner.name} />}
      actions={
        <>
          <Hold view={view} partner={partner} />
          <Export view={view} id={partner.id} />
        </>
      }
    >
      <Card>
        <Facts facts={toFacts(partner)} />
      </Card>
      <Section title="Rhythm" hint="Accepted events in the last week, by the hour in UTC, without dry runs.">
        {week === null ? <Empty>Unknown.</Empty> : <Rhythm week={week} />}
      </Section>
      <Refusals view={view} partner={partner.id} refusals={refusals} />
      <Section
        title="Warnings"
        id="warnings"
        hint={`What accepted events were warned of in the last ${countDaysKept} days, most frequent first.`}
        actions={<RunbookLink view={view} section="PartnerWarningsJumped" />}
      >
        <Table
          caption="Warnings by field"
          isCaptionHidden
          rows={warnings ?? []}
          columns={warningColumns(view)}
          empty={warnings === null ? "Unknown." : "None."}
        />
      </Section>
      <Section title="Secrets" id="secrets" hint="New ones come from the command line: ops partners rotate.">
        <Table
          caption="Secrets"
          isCaptionHidden
          rows={partner.secrets}
          columns={secretColumns(view)}
          empty="It has none, and can't send events."
        />
      </Section>
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
        comparedWith="a week before"
        bars={week.hours.map((hour) => ({
          label: formatDayAndClock(hour.at),
          value: hour.accepted,
          compared: hour.acceptedWeekBefore,
        }))}
      />
    </>
  );
}

function toFacts(partner: ListedPartner) {
  const { kinds, rateLimit, bytesPerDay, bytesToday, country } = partner;
  const used = bytesToday === undefined ? "" : `${describeQuota(bytesToday)} of `;
  return [
    ["State", <PartnerState partner={partner} />],
    ["May send", kinds.join(", ") || "nothing"],
    ["Rate limit", `${formatNumber(rateLimit.perSecond)} a second, bursts of ${formatNumber(rateLimit.burst)}`],
    ["Quota today", `${used}${describeQuota(bytesPerDay)}`],
    ["Phones without a country are of", country ?? null],
    ["Events", <a href={paths.events({ partner: partner.id })}>What it has sent</a>],
    ["Bookings", <a href={`/restore?${new URLSearchParams({ partner: partner.id })}`}>Restore…</a>],
  ] as const;
}

function Export({ view, id }: { view: View; id: string }): VNode {
  return (
    <ConfirmForm view={view} role="operator" action={`${paths.partner(id)}/bookings.csv`} verb="Export">
      <p>
        All its bookings as CSV: references, states, times, and the days and places of trips, without the other values.
        It is recorded in the audit. For events, for a time and for JSON lines, there is <code>ops export</code>.
      </p>
    </ConfirmForm>
  );
}

function Hold({ view, partner: { id, held } }: { view: View; partner: ListedPartner }): VNode {
  const action = `${paths.partner(id)}/${held ? "release" : "hold"}`;
  return held ? (
    <ConfirmForm view={view} role="operator" action={action} verb="Release">
      <p>Its events are accepted again. What its sender has kept comes now.</p>
    </ConfirmForm>
  ) : (
    <ConfirmForm view={view} role="operator" action={action} verb="Hold">
      <p>
        Its events are answered with 503 and Retry-After until you release it, so its sender keeps them. What it has
        sent already is applied, and its questions are answered.
      </p>
    </ConfirmForm>
  );
}

function Refusals({
  view,
  partner,
  refusals,
}: {
  view: View;
  partner: string;
  refusals: PartnerPageProps["refusals"];
}): VNode {
  const reasons = [...Map.groupBy(refusals ?? [], ({ code }) => code)]
    .map(([code, all]) => ({ code, count: all.length, last: all[0]?.at ?? null, violations: topViolations(all) }))
    .sort((one, other) => other.count - one.count);
  return (
    <Section
      title="Refusals"
      id="refusals"
      hint="Of the last seven days, as far as they are recorded: the newest 250."
      actions={<RunbookLink view={view} section="PartnerRefusalsJumped" />}
    >
      <Table
        caption="Reasons"
        rows={reasons}
        columns={[
          { title: "Reason", isName: true, cell: ({ code }) => code },
          { title: "Requests", isNumber: true, cell: ({ count }) => formatNumber(count) },
          { title: "Fields", isWide: true, cell: ({ violations }) => violations || <span class="faint">–</span> },
          { title: "Last", cell: ({ last }) => <Time at={last} now={view.now} /> },
        ]}
        empty={refusals === null ? "Unknown." : "None is recorded."}
      />
      {reasons.length > 0 && (
        <details class="fold">
          <summary>The newest {Math.min(maxRefusals, refusals?.length ?? 0)}</summary>
          <Table
            caption={`Refused requests of ${partner}`}
            isCaptionHidden
            rows={(refusals ?? []).slice(0, maxRefusals)}
            columns={refusalColumns(view)}
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

const refusalColumns = (view: View): Column<RecordedRefusal>[] => [
  { title: "Time", isName: true, cell: ({ at }) => <Time at={at} now={view.now} /> },
  { title: "Status", isNumber: true, cell: ({ status }) => status },
  { title: "Why", isWide: true, cell: ({ code, violations }) => [code, ...violations].join(" ") },
  { title: "Kind", cell: ({ kind }) => kind ?? "" },
  { title: "Secret", cell: ({ secretId }) => secretId ?? "" },
  { title: "Address", cell: ({ ip }) => ip ?? "" },
  { title: "Request", cell: ({ requestId }) => <Id value={requestId} /> },
];

const warningColumns = (view: View): Column<FieldTotal>[] => [
  { title: "Field", isName: true, cell: ({ field }) => field || <span class="faint">the request</span> },
  { title: "Warning", isWide: true, cell: ({ code }) => code },
  { title: "Events", isNumber: true, cell: ({ count }) => formatNumber(count) },
  { title: "First", cell: ({ firstAt }) => <Time at={firstAt} now={view.now} /> },
  { title: "Last", cell: ({ lastAt }) => <Time at={lastAt} now={view.now} /> },
  {
    title: "Last event",
    cell: ({ lastEventId }) =>
      lastEventId === null ? <span class="faint">a dry run</span> : <EventLink id={lastEventId} />,
  },
];

const secretColumns = (view: View): Column<ListedSecret>[] => [
  { title: "Secret", isName: true, cell: ({ id }) => id },
  { title: "State", cell: (secret) => <SecretState secret={secret} /> },
  { title: "Created", cell: ({ createdAt }) => <Time at={new Date(createdAt)} now={view.now} /> },
  {
    title: "Expires",
    cell: ({ expiresAt, revoked }) =>
      revoked ? "" : <Time at={expiresAt === null ? null : new Date(expiresAt)} now={view.now} />,
  },
  {
    title: "Last used",
    isWide: true,
    cell: ({ lastUsedAt }) =>
      lastUsedAt === undefined ? <span class="faint">unknown</span> : <Time at={lastUsedAt} now={view.now} />,
  },
];

function SecretState({ secret: { valid, revoked } }: { secret: ListedSecret }): VNode {
  if (valid) return <Badge tone="good">valid</Badge>;
  return <Badge tone="quiet">{revoked ? "revoked" : "expired"}</Badge>;
}
