import { type EventDetails, type EventSearch, outcomes } from "@booking-events/operations";
import { eventKinds } from "@booking-events/schema";
import type { VNode } from "preact";
import { describeEvent } from "../bookings/timeline.tsx";
import { Badge } from "../page/badge.tsx";
import { type FilterField, Filters } from "../page/filters.tsx";
import { Layout } from "../page/layout.tsx";
import { Pagination } from "../page/pagination.tsx";
import { PartnerLink } from "../page/paths.tsx";
import { type Column, Table } from "../page/table.tsx";
import { Text } from "../page/text.tsx";
import { useRole } from "../page/view.ts";
import { BookingLink } from "./booking-link.tsx";
import { EventLink } from "./event-link.tsx";

const fields: FilterField[] = [
  { name: "partner", label: "Partner" },
  { name: "kind", label: "Kind", choices: eventKinds },
  { name: "outcome", label: "Outcome", choices: outcomes },
  { name: "secret", label: "Secret" },
  { name: "since", label: "Since", example: "1h or 02:00" },
  { name: "until", label: "Until", example: "10m or 2026-11-20" },
];

interface EventsPageProps {
  query: URLSearchParams;
  search: EventSearch;
}

/** The log, the newest events first. */
export function EventsPage({ query, search: { events, lookedTo } }: EventsPageProps): VNode {
  return (
    <Layout
      title="Events"
      intro="What was received and applied, the newest first. What waits or has failed is under Stuck. Times are in UTC."
      actions={<RestoreLink query={query} />}
    >
      <Filters query={query} fields={fields} />
      <Table caption="Events in the log" columns={columns} rows={events} empty={explainNone(lookedTo)} />
      <Pagination query={query} parameter="before" next={lookedTo} />
    </Layout>
  );
}

/** To the form that puts back what the events of this partner, by this secret, have done. */
function RestoreLink({ query }: { query: URLSearchParams }): VNode | null {
  if (!useRole("operator")) return null;
  const wanted = ["partner", "secret"].map((name) => [name, query.get(name) ?? ""]).filter(([, value]) => value !== "");
  return (
    <a class="button" href={`/restore?${new URLSearchParams(wanted)}`}>
      Restore bookings…
    </a>
  );
}

/** A page looks at a limited number of events, and so may find none of them. */
function explainNone(lookedTo: string | null): string {
  return lookedTo === null
    ? "There are no such events."
    : "None of the last 20,000 events is such a one. The next page looks at earlier ones.";
}

const columns: Column<EventDetails>[] = [
  { title: "Event", isName: true, cell: ({ id }) => <EventLink id={id} /> },
  { title: "Received", cell: ({ receivedAt }) => receivedAt },
  { title: "Outcome", cell: (applied) => <Outcome applied={applied} /> },
  { title: "Partner", cell: ({ partner }) => <PartnerLink id={partner} /> },
  { title: "Booking", cell: (event) => <BookingLink {...event} /> },
  { title: "Secret", cell: ({ secretId }) => secretId ?? <span class="faint">none</span> },
];

function Outcome({ applied }: { applied: EventDetails }): VNode {
  const [word, tone] = describeEvent({ status: "applied", applied });
  return (
    <>
      <span class="nowrap">
        <Badge tone={tone}>{word}</Badge> {applied.kind}
      </span>
      {applied.warnings.length > 0 && (
        <small class="line">
          <Text value={applied.warnings.join(", ")} />
        </small>
      )}
    </>
  );
}
