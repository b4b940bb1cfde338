import type { StuckCause, StuckEvent, StuckEvents, StuckGroup, StuckGroups } from "@booking-events/operations";
import type { ComponentChildren, VNode } from "preact";
import { BookingLink } from "../events/booking-link.tsx";
import { EventLink } from "../events/event-link.tsx";
import { Badge } from "../page/badge.tsx";
import { ConfirmForm } from "../page/confirm-form.tsx";
import { Filters } from "../page/filters.tsx";
import { Layout } from "../page/layout.tsx";
import { formatNumber } from "../page/numbers.ts";
import { Pagination } from "../page/pagination.tsx";
import { PartnerLink } from "../page/paths.tsx";
import { type Column, Table, TableSection } from "../page/table.tsx";
import { Text } from "../page/text.tsx";
import { Time } from "../page/time.tsx";
import { useRole } from "../page/view.ts";
import { TasksLink } from "../tasks/tasks-link.tsx";
import { meaningOf, statuses, toneOf } from "./describe-cause.ts";

interface StuckPageProps {
  query: URLSearchParams;
  partner: string | undefined;
  cause: StuckCause | undefined;
  grouped: StuckGroups;
  found: StuckEvents;
}

/** What was accepted and is not applied: why, and when it is tried again. */
export function StuckPage({ query, partner, cause, grouped, found }: StuckPageProps): VNode {
  return (
    <Layout title="Stuck" intro="Events that were accepted and are not applied yet, by cause." actions={<TasksLink />}>
      <Filters
        query={query}
        fields={[
          { name: "partner", label: "Partner" },
          { name: "status", label: "Status", choices: statuses },
          { name: "code", label: "Code", example: "23514" },
        ]}
      />
      <Table
        caption="Causes"
        columns={groupColumns(partner)}
        rows={grouped.groups}
        empty="No event waits, and there are no open dead letters."
      />
      {grouped.looked < grouped.total && (
        <p class="hint">
          {formatNumber(grouped.looked)} of {formatNumber(grouped.total)} events in the queue were counted.
        </p>
      )}
      <TableSection
        title={["The oldest", cause?.status, cause?.code].filter(Boolean).join(", ")}
        id="events"
        columns={eventColumns}
        rows={found.events}
        empty="There are no such events."
      >
        {cause?.status === "dead" && <Pagination query={query} parameter="after" next={found.nextAfter} />}
      </TableSection>
    </Layout>
  );
}

function groupColumns(partner: string | undefined): Column<StuckGroup>[] {
  return [
    { title: "Status", cell: ({ status }) => <Badge tone={toneOf[status]}>{status}</Badge> },
    {
      title: "Cause",
      isName: true,
      cell: ({ status, code }) => (
        <>
          <a href={`${stuckPath({ partner, status, code })}#events`}>{code ?? "all"}</a>
          <small class="line">{meaningOf[status]}</small>
        </>
      ),
    },
    { title: "Events", isNumber: true, cell: ({ count }) => count },
    { title: "Oldest failed", cell: ({ oldestFailedAt }) => oldestFailedAt },
    { title: "Tried again", cell: describeNext },
    { title: "Actions", cell: (group) => <GroupActions group={group} partner={partner} /> },
  ];
}

function describeNext({ status, nextAttemptAt, replayed }: StuckGroup): ComponentChildren {
  if (status === "dead") return replayed === 0 ? "when replayed" : `${formatNumber(replayed)} replayed`;
  return nextAttemptAt ?? "when a worker is free";
}

function GroupActions({
  group: { status, code },
  partner,
}: {
  group: StuckGroup;
  partner: string | undefined;
}): VNode | null {
  if (!useRole("operator")) return null;
  const query = new URLSearchParams(Object.entries({ partner, code }).filter(isGiven));
  if (status === "dead")
    return (
      <span class="actions">
        <a class="button" href={`/stuck/replay?${query}`}>
          Replay…
        </a>
        <a class="button button-danger" href={`/stuck/discard?${query}`}>
          Discard…
        </a>
      </span>
    );
  if (status !== "delayed") return null;
  return (
    <ConfirmForm action="/stuck/retry-now" verb="Try now" fields={code === null ? {} : { code }}>
      <p>
        {code === null ? "All delayed events" : `All events that failed with ${code}`}, of all partners, are tried as
        soon as a worker is free, instead of at their times. To do it again is safe.
      </p>
    </ConfirmForm>
  );
}

const isGiven = (entry: [string, string | null | undefined]): entry is [string, string] => Boolean(entry[1]);

function stuckPath(chosen: { partner: string | undefined; status: string; code: string | null }): string {
  return `/stuck?${new URLSearchParams(Object.entries(chosen).filter(isGiven))}`;
}

export const eventColumns: Column<StuckEvent>[] = [
  { title: "Event", isName: true, cell: ({ id }) => <EventLink id={id} /> },
  { title: "Received", cell: ({ receivedAt }) => <Time at={receivedAt} none="unknown" /> },
  {
    title: "Status",
    cell: ({ status, kind }) => (
      <span class="nowrap">
        {status !== "applied" && <Badge tone={toneOf[status]}>{status}</Badge>} {kind ?? "?"}
      </span>
    ),
  },
  { title: "Partner", cell: ({ partner }) => (partner === null ? "?" : <PartnerLink id={partner} />) },
  { title: "Booking", cell: (event) => <BookingLink {...event} /> },
  {
    title: "Why, and when it is tried again",
    cell: (event) => (
      <>
        <Text value={event.why} limit={240} /> <small class="line">{describeAgain(event)}</small>
      </>
    ),
  },
];

function describeAgain({ status, nextAttemptAt }: StuckEvent): ComponentChildren {
  if (status === "dead") return "Tried again when it is replayed";
  if (nextAttemptAt === null) return "Tried when a worker is free";
  return (
    <>
      Tried again <Time at={nextAttemptAt} />
    </>
  );
}
