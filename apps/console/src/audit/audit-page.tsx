import { describeValues, type Erasure, type OperatorAction } from "@booking-events/operations";
import type { VNode } from "preact";
import { Badge, type Tone } from "../page/badge.tsx";
import { Filters } from "../page/filters.tsx";
import { Layout } from "../page/layout.tsx";
import { Pagination } from "../page/pagination.tsx";
import { Shown } from "../page/shown.tsx";
import { type Column, Table, TableSection } from "../page/table.tsx";
import { Text } from "../page/text.tsx";

interface AuditPageProps {
  query: URLSearchParams;
  actions: readonly OperatorAction[];
  /** The next page has what was done before. Null: there is none. */
  next: Date | null;
  erasures: readonly Erasure[];
}

export function AuditPage({ query, actions, next, erasures }: AuditPageProps): VNode {
  return (
    <Layout title="Audit" intro="Who did what. It holds nothing of a guest, and no secret.">
      <Filters
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
        columns={actionColumns}
        empty="Nothing of the kind is recorded."
      />
      <Pagination query={query} parameter="until" next={next?.toISOString() ?? null} />
      <TableSection
        title="Erasures"
        id="erasures"
        hint="Of guests, by the command line, the newest first."
        rows={erasures}
        columns={erasureColumns}
        empty="No guest has been erased."
      />
    </Layout>
  );
}

const actionColumns: Column<OperatorAction>[] = [
  { title: "Time", isName: true, cell: ({ at }) => at },
  { title: "Who", cell: ({ by }) => by },
  { title: "Did", cell: ({ command }) => <span class="nowrap">{command}</span> },
  { title: "To", isWide: true, cell: (action) => <Text value={describeValues(action.arguments)} limit={200} /> },
  { title: "Result", cell: (action) => <Result action={action} /> },
];

const tones: Record<string, Tone> = { done: "good", refused: "warn", cancelled: "warn", failed: "bad" };

function Result({ action: { outcome, did, problem } }: { action: OperatorAction }): VNode {
  return (
    <>
      <Badge tone={tones[outcome ?? ""] ?? "quiet"}>{outcome ?? "unknown"}</Badge>{" "}
      <Shown value={[describeValues(did), problem].filter(Boolean).join(". ")} />
    </>
  );
}

const erasureColumns: Column<Erasure>[] = [
  { title: "Time", isName: true, cell: ({ at }) => at },
  { title: "Who", cell: ({ by }) => by },
  { title: "Why", isWide: true, cell: ({ reason }) => <Text value={reason} limit={200} /> },
  { title: "Found by", cell: ({ search }) => search },
  { title: "Bookings", isNumber: true, cell: ({ bookings }) => bookings },
  { title: "Events", isNumber: true, cell: ({ events }) => events },
  { title: "Dead letters", isNumber: true, cell: ({ deadLetters }) => deadLetters },
  { title: "Out of the queue", isNumber: true, cell: ({ jobs }) => jobs },
];
