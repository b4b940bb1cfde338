import type { Found, FoundByText } from "@booking-events/operations";
import type { VNode } from "preact";
import { BookingLink } from "../events/booking-link.tsx";
import { EventLink } from "../events/event-link.tsx";
import { Badge } from "../page/badge.tsx";
import { Layout, Notice } from "../page/layout.tsx";
import { PartnerLink } from "../page/paths.tsx";
import { type Column, Empty, Table } from "../page/table.tsx";
import { Text } from "../page/text.tsx";

/** @param props.result null: nothing was asked */
export function SearchPage({ text, result }: { text: string; result: FoundByText | null }): VNode {
  return (
    <Layout
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
        <Notice tone="remark">Not looked at: {place}</Notice>
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
  { title: "Partner", cell: ({ partner }) => partner && <PartnerLink id={partner} /> },
  { title: "Booking", isWide: true, cell: (found) => <Booking found={found} /> },
  {
    title: "Event",
    cell: ({ eventId, requestId }) =>
      eventId === null ? requestId && `request ${requestId}` : <EventLink id={eventId} />,
  },
  { title: "State", cell: ({ state }) => state },
];

function Booking({ found }: { found: Found }): VNode | null {
  if (found.reference === null) return null;
  return (
    <>
      <BookingLink {...found} /> {found.referenceKind === "consumer" && <small>the consumer's</small>}
    </>
  );
}
