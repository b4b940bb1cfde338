import type { Arrivals, ArrivingGuest } from "@booking-events/operations";
import type { VNode } from "preact";
import { BookingLink } from "../events/booking-link.tsx";
import { Badge, type Tone } from "../page/badge.tsx";
import { Filters } from "../page/filters.tsx";
import { Layout } from "../page/layout.tsx";
import { formatNumber } from "../page/numbers.ts";
import { paths } from "../page/paths.ts";
import { RunbookLink } from "../page/runbook-link.tsx";
import { Section } from "../page/section.tsx";
import { Stats } from "../page/stats.tsx";
import { type Column, Table } from "../page/table.tsx";
import { Text } from "../page/text.tsx";
import { Day, Time } from "../page/time.tsx";
import type { View } from "../page/view.ts";

export const windows = ["12h", "24h", "48h", "7d"] as const;
export type Window = (typeof windows)[number];
export const defaultWindow: Window = "48h";

interface ArrivalsPageProps {
  view: View;
  arrivals: Arrivals;
  within: Window;
  query: URLSearchParams;
}

export function ArrivalsPage({ view, arrivals, within, query }: ArrivalsPageProps): VNode {
  const { guests, isCut, queueProblem } = arrivals;
  const [unresolved, others] = [guests.filter(needsSomebody), guests.filter((guest) => !needsSomebody(guest))];
  return (
    <Layout
      view={view}
      title="Arrivals"
      intro={`Guests who arrive within ${within}: is the partner's last word on each applied?`}
    >
      <Filters
        path="/arrivals"
        query={query}
        fields={[
          { name: "within", label: "Within", choices: windows, initial: defaultWindow },
          { name: "partner", label: "Partner" },
        ]}
      />
      <ArrivalStats arrivals={arrivals} />
      {queueProblem !== null && (
        <p class="notice notice-problem" role="alert">
          The queue was not looked at: <Text value={queueProblem} limit={600} />
        </p>
      )}
      <Section
        title="Unresolved"
        hint="A dead letter, an event that has waited for over a minute, or a phone number or e-mail address that can't be read."
        actions={<RunbookLink view={view} section="GuestsArriveUnresolved" />}
      >
        <Guests
          caption="Guests with something unresolved"
          guests={unresolved}
          view={view}
          empty="Nothing is unresolved."
        />
      </Section>
      <Section title="Known" hint="The last word is applied, or just being applied.">
        <Guests
          caption="Other guests who arrive"
          guests={others}
          view={view}
          empty="No other guest is known to arrive."
        />
        {isCut && <p class="hint">There are more. Choose a shorter time, or a partner.</p>}
      </Section>
    </Layout>
  );
}

const needsSomebody = ({ isUnresolved }: ArrivingGuest) => isUnresolved;

function ArrivalStats({ arrivals: { counts } }: Pick<ArrivalsPageProps, "arrivals">): VNode {
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

interface GuestsProps {
  caption: string;
  guests: readonly ArrivingGuest[];
  view: View;
  empty: string;
}

function Guests({ caption, guests, view, empty }: GuestsProps): VNode {
  return <Table caption={caption} isCaptionHidden rows={guests} columns={columnsFor(view)} empty={empty} />;
}

function columnsFor({ now }: View): Column<ArrivingGuest>[] {
  return [
    { title: "Arrives", cell: (guest) => <Arrival guest={guest} now={now} /> },
    {
      title: "At",
      cell: ({ destinationAirport, destinationCountry }) =>
        destinationAirport ?? destinationCountry ?? <span class="faint">–</span>,
    },
    {
      title: "Booking",
      isName: true,
      isWide: true,
      cell: (guest) => (
        <>
          <BookingLink {...guest} />{" "}
          <small class="line">
            of <a href={paths.partner(guest.partner)}>{guest.partner}</a>
          </small>
        </>
      ),
    },
    { title: "Last word", cell: ({ lastWordAt }) => <Time at={lastWordAt} now={now} none="unknown" /> },
    { title: "State", cell: (guest) => <State guest={guest} /> },
  ];
}

function Arrival({ guest: { arrivalAt, arrivalDay }, now }: { guest: ArrivingGuest; now: Date }): VNode {
  if (arrivalAt !== null) return <Time at={arrivalAt} now={now} />;
  return arrivalDay === null ? <span class="faint">unknown</span> : <Day text={arrivalDay} />;
}

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
