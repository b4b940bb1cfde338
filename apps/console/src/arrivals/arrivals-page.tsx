import type { Arrivals, ArrivingGuest } from "@booking-events/operations";
import type { VNode } from "preact";
import { BookingLink } from "../events/booking-link.tsx";
import { Badge, type Tone } from "../page/badge.tsx";
import { Filters } from "../page/filters.tsx";
import { Layout, Notice } from "../page/layout.tsx";
import { formatNumber } from "../page/numbers.ts";
import { PartnerLink } from "../page/paths.tsx";
import { RunbookLink } from "../page/runbook-link.tsx";
import { Stats } from "../page/stats.tsx";
import { type Column, TableSection } from "../page/table.tsx";
import { Text } from "../page/text.tsx";
import { Day, Time } from "../page/time.tsx";

export const windows = ["12h", "24h", "48h", "7d"] as const;
export type Window = (typeof windows)[number];
export const defaultWindow: Window = "48h";

interface ArrivalsPageProps {
  arrivals: Arrivals;
  within: Window;
  query: URLSearchParams;
}

export function ArrivalsPage({ arrivals, within, query }: ArrivalsPageProps): VNode {
  const { guests, isCut, queueProblem, counts } = arrivals;
  return (
    <Layout title="Arrivals" intro={`Guests who arrive within ${within}: is the partner's last word on each applied?`}>
      <Filters
        query={query}
        fields={[
          { name: "within", label: "Within", choices: windows, initial: defaultWindow },
          { name: "partner", label: "Partner" },
        ]}
      />
      <ArrivalStats counts={counts} />
      {queueProblem !== null && (
        <Notice tone="problem">
          The queue was not looked at: <Text value={queueProblem} limit={600} />
        </Notice>
      )}
      <TableSection
        title="Unresolved"
        hint="A dead letter, an event that has waited for over a minute, or a phone number or e-mail address that can't be read."
        actions={<RunbookLink section="GuestsArriveUnresolved" />}
        rows={guests.filter(({ isUnresolved }) => isUnresolved)}
        columns={columns}
        empty="Nothing is unresolved."
      />
      <TableSection
        title="Known"
        hint="The last word is applied, or just being applied."
        rows={guests.filter(({ isUnresolved }) => !isUnresolved)}
        columns={columns}
        empty="No other guest is known to arrive."
      >
        {isCut && <p class="hint">There are more. Choose a shorter time, or a partner.</p>}
      </TableSection>
    </Layout>
  );
}

function ArrivalStats({ counts }: Pick<Arrivals, "counts">): VNode {
  const { arriving, unresolved, dead, waiting, unreadable } = counts;
  const bad = (count: number) => (count > 0 ? "bad" : undefined);
  return (
    <Stats
      stats={[
        { name: "Guests arrive", value: formatNumber(arriving) },
        { name: "Unresolved", value: formatNumber(unresolved), tone: unresolved > 0 ? "bad" : "good" },
        { name: "Dead", value: formatNumber(dead), detail: "the last word could not be applied", tone: bad(dead) },
        { name: "Waiting", value: formatNumber(waiting), detail: "for over a minute", tone: bad(waiting) },
        { name: "Unreadable", value: formatNumber(unreadable), detail: "a phone number or e-mail address" },
      ]}
    />
  );
}

const unknown = <span class="faint">unknown</span>;

const columns: Column<ArrivingGuest>[] = [
  { title: "Arrives", cell: ({ arrivalAt, arrivalDay: day }) => arrivalAt ?? (day ? <Day text={day} /> : unknown) },
  {
    title: "At",
    cell: ({ destinationAirport, destinationCountry }) => destinationAirport ?? destinationCountry ?? "–",
  },
  {
    title: "Booking",
    isName: true,
    isWide: true,
    cell: (guest) => (
      <>
        <BookingLink {...guest} />{" "}
        <small class="line">
          of <PartnerLink id={guest.partner} />
        </small>
      </>
    ),
  },
  { title: "Last word", cell: ({ lastWordAt }) => <Time at={lastWordAt} none="unknown" /> },
  { title: "State", cell: (guest) => <State guest={guest} /> },
];

function State({ guest }: { guest: ArrivingGuest }): VNode {
  return (
    <>
      {describeState(guest).map(([tone, text]) => (
        <>
          <Badge tone={tone}>{text}</Badge>{" "}
        </>
      ))}
    </>
  );
}

function describeState(guest: ArrivingGuest): [Tone, string][] {
  const { isApplied, isUnresolved, appliedUntil, letters, waiting, unreadable } = guest;
  const [soon, late] = isUnresolved ? (["warn", "bad"] as const) : (["info", "info"] as const);
  return [
    ...(isApplied ? [["good", "applied"] as [Tone, string]] : []),
    ...(appliedUntil === null ? [[late, "nothing applied"] as [Tone, string]] : []),
    ...letters.map(({ kind, errorCode }): [Tone, string] => ["bad", `${kind ?? "event"} dead: ${errorCode}`]),
    ...waiting.map(({ kind, state }): [Tone, string] => [soon, `${kind ?? "event"} ${state}`]),
    ...unreadable.map((field): [Tone, string] => ["warn", `${labels[field] ?? field} unreadable`]),
  ];
}

/** The names of fields are too long for a telephone. */
const labels: Record<string, string> = {
  consumerPhone: "phone",
  consumerEmail: "e-mail",
  consumerTripDestinationCountryName: "country",
  consumerTripDestinationAirportCode: "airport",
  agentPhoneNumber: "agent's phone",
  agentEmail: "agent's e-mail",
};
