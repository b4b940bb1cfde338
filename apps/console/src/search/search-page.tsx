import type { Found, FoundByText } from "@booking-events/operations";
import type { VNode } from "preact";
import { EventLink } from "../events/event-link.tsx";
import { Badge } from "../page/badge.tsx";
import { Layout } from "../page/layout.tsx";
import { paths } from "../page/paths.ts";
import { type Column, Empty, Table } from "../page/table.tsx";
import { Text } from "../page/text.tsx";
import type { View } from "../page/view.ts";

/** @param props.result null: nothing was asked */
export function SearchPage({ view, text, result }: { view: View; text: string; result: FoundByText | null }): VNode {
  return (
    <Layout
      view={view}
      title="Search"
      searched={text}
      intro="All partners: bookings, the log, dead letters, the queue and refused requests, by one text."
    >
      {result === null ? (
        <Empty>
          Enter a booking's reference, the id of an event or of a request, or a guest's e-mail address or phone number.
        </Empty>
      ) : (
        <Results text={text} result={result} />
      )}
    </Layout>
  );
}

function Results({ text, result: { found, isCut, looked, unseen } }: { text: string; result: FoundByText }): VNode {
  return (
    <>
      {unseen.map((place) => (
        <p class="notice notice-remark" role="status">
          Not looked at: {place}
        </p>
      ))}
      <Table
        caption={`${found.length} found${isCut ? ", and there are more" : ""}`}
        rows={found}
        columns={columns}
        empty={
          <>
            Nothing was found for <Text value={text} limit={80} />.
          </>
        }
      />
      <details class="fold">
        <summary>Where it looked</summary>
        <ul>
          {looked.map((place) => (
            <li>{place}</li>
          ))}
        </ul>
      </details>
    </>
  );
}

const columns: Column<Found>[] = [
  {
    title: "What",
    isName: true,
    cell: ({ what, isTest }) => (
      <>
        {what} {isTest && <Badge tone="quiet">test</Badge>}
      </>
    ),
  },
  {
    title: "Found by",
    cell: ({ by, closeness }) => (
      <>
        {by} {closeness === "near" && <Badge tone="warn">near: perhaps another guest</Badge>}
      </>
    ),
  },
  { title: "Partner", cell: ({ partner }) => (partner === null ? "" : <a href={paths.partner(partner)}>{partner}</a>) },
  { title: "Booking", isWide: true, cell: (found) => <BookingLink found={found} /> },
  { title: "Event", cell: ({ eventId }) => eventId !== null && <EventLink id={eventId} /> },
  { title: "State", cell: ({ state }) => state ?? "" },
];

function BookingLink({ found: { partner, reference, referenceKind } }: { found: Found }): VNode | null {
  if (partner === null || reference === null) return null;
  const link = (
    <a href={paths.booking(partner, reference)}>
      <Text value={reference} limit={80} />
    </a>
  );
  return referenceKind === "consumer" ? (
    <>
      {link} <small>the consumer's</small>
    </>
  ) : (
    link
  );
}
