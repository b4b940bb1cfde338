import { describeValues, type Erasure, type OperatorAction } from "@booking-events/operations";
import type { VNode } from "preact";
import { Badge, type Tone } from "../page/badge.tsx";
import { Filters } from "../page/filters.tsx";
import { Layout } from "../page/layout.tsx";
import { formatNumber } from "../page/numbers.ts";
import { Pagination } from "../page/pagination.tsx";
import { Section } from "../page/section.tsx";
import { type Column, Table } from "../page/table.tsx";
import { Text } from "../page/text.tsx";
import { Time } from "../page/time.tsx";
import type { View } from "../page/view.ts";

interface AuditPageProps {
  view: View;
  query: URLSearchParams;
  actions: readonly OperatorAction[];
  /** The next page has what was done before. Null: there is none. */
  next: Date | null;
  erasures: readonly Erasure[];
}

export function AuditPage({ view, query, actions, next, erasures }: AuditPageProps): VNode {
  return (
    <Layout view={view} title="Audit" intro="Who did what. It holds nothing of a guest, and no secret.">
      <Filters
        path="/audit"
        query={query}
        fields={[
          { name: "by", label: "Who" },
          { name: "since", label: "Since", example: "1d, 02:00" },
          { name: "until", label: "Before", example: "1h, 14:00" },
        ]}
      />
      <Table
        caption="What operators did, the newest first"
        rows={actions}
        columns={actionColumns(view)}
        empty="Nothing of the kind is recorded."
      />
      <Pagination
        path="/audit"
        query={query}
        next={next === null ? null : { until: next.toISOString() }}
        parameters={["until"]}
      />
      <Section title="Erasures" id="erasures" hint="Of guests, by the command line.">
        <Table
          caption="Erasures, the newest first"
          isCaptionHidden
          rows={erasures}
          columns={erasureColumns(view)}
          empty="No guest has been erased."
        />
      </Section>
    </Layout>
  );
}

const actionColumns = (view: View): Column<OperatorAction>[] => [
  { title: "Time", isName: true, cell: ({ at }) => <Time at={at} now={view.now} /> },
  { title: "Who", cell: ({ by }) => <Text value={by} limit={40} /> },
  { title: "Did", cell: ({ command }) => <span class="nowrap">{command}</span> },
  { title: "To", isWide: true, cell: (action) => <Text value={describeValues(action.arguments)} limit={200} /> },
  { title: "Result", cell: (action) => <Result action={action} /> },
];

const tones: Record<string, Tone> = { done: "good", refused: "warn", failed: "bad" };

function Result({ action: { outcome, did, problem } }: { action: OperatorAction }): VNode {
  const details = [describeValues(did), problem ?? ""].filter(Boolean).join(". ");
  return (
    <>
      <Badge tone={tones[outcome ?? ""] ?? "quiet"}>{outcome ?? "unknown"}</Badge>{" "}
      {details !== "" && <Text value={details} limit={120} />}
    </>
  );
}

const erasureColumns = (view: View): Column<Erasure>[] => [
  { title: "Time", isName: true, cell: ({ at }) => <Time at={at} now={view.now} /> },
  { title: "Who", cell: ({ by }) => <Text value={by} limit={40} /> },
  { title: "Why", isWide: true, cell: ({ reason }) => <Text value={reason} limit={200} /> },
  { title: "Found by", cell: ({ search }) => search },
  { title: "Bookings", isNumber: true, cell: ({ bookings }) => formatNumber(bookings) },
  { title: "Events", isNumber: true, cell: ({ events }) => formatNumber(events) },
  { title: "Dead letters", isNumber: true, cell: ({ deadLetters }) => formatNumber(deadLetters) },
  { title: "Out of the queue", isNumber: true, cell: ({ jobs }) => formatNumber(jobs) },
];
