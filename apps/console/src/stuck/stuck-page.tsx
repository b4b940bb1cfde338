import type { StuckCause, StuckEvent, StuckEvents, StuckGroup, StuckGroups } from "@booking-events/operations";
import type { ComponentChildren, VNode } from "preact";
import { BookingLink } from "../events/booking-link.tsx";
import { EventLink } from "../events/event-link.tsx";
import { Badge } from "../page/badge.tsx";
import { ConfirmForm } from "../page/confirm-form.tsx";
import { Filters } from "../page/filters.tsx";
import { Layout } from "../page/layout.tsx";
import { Pagination } from "../page/pagination.tsx";
import { paths } from "../page/paths.ts";
import { Section } from "../page/section.tsx";
import { type Column, Table } from "../page/table.tsx";
import { Text } from "../page/text.tsx";
import { Time } from "../page/time.tsx";
import type { View } from "../page/view.ts";
import { meaningOf, statuses, toneOf } from "./describe-cause.ts";

interface StuckPageProps {
  view: View;
  query: URLSearchParams;
  partner: string | undefined;
  cause: StuckCause | undefined;
  grouped: StuckGroups;
  found: StuckEvents;
}

/** What was accepted and is not applied: why, and when it is tried again. */
export function StuckPage({ view, query, partner, cause, grouped, found }: StuckPageProps): VNode {
  return (
    <Layout
      view={view}
      title="Stuck"
      intro="Events that were accepted and are not applied yet, by cause."
      actions={
        <a class="button button-quiet" href="/tasks">
          Tasks
        </a>
      }
    >
      <Filters
        path={view.path}
        query={query}
        fields={[
          { name: "partner", label: "Partner" },
          { name: "status", label: "Status", choices: statuses },
          { name: "code", label: "Code", example: "23514" },
        ]}
      />
      <Table
        caption="Causes"
        columns={groupColumns(view, partner)}
        rows={grouped.groups}
        empty="No event waits, and there are no open dead letters."
      />
      {grouped.looked < grouped.total && (
        <p class="hint">
          {grouped.looked.toLocaleString("en")} of {grouped.total.toLocaleString("en")} events in the queue were
          counted.
        </p>
      )}
      <Section title={cause === undefined ? "The oldest" : describeCause(cause)} id="events">
        <Table
          caption="Stuck events, the oldest first"
          isCaptionHidden
          columns={eventColumns(view)}
          rows={found.events}
          empty="There are no such events."
        />
        {cause?.status === "dead" && (
          <Pagination
            path={view.path}
            query={query}
            next={found.nextAfter === null ? null : { after: found.nextAfter }}
            parameters={["after"]}
          />
        )}
      </Section>
    </Layout>
  );
}

function describeCause({ status, code }: StuckCause): string {
  return code === undefined ? `The oldest: ${status}` : `The oldest: ${status}, ${code}`;
}

function groupColumns(view: View, partner: string | undefined): Column<StuckGroup>[] {
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
    { title: "Events", isNumber: true, cell: ({ count }) => count.toLocaleString("en") },
    { title: "Oldest failed", cell: ({ oldestFailedAt }) => <Time at={oldestFailedAt} now={view.now} none="" /> },
    { title: "Tried again", cell: (group) => describeNext(group, view) },
    { title: "Actions", cell: (group) => <GroupActions view={view} group={group} partner={partner} /> },
  ];
}

function describeNext({ status, nextAttemptAt, replayed }: StuckGroup, { now }: View): ComponentChildren {
  if (status === "dead") return replayed === 0 ? "when replayed" : `${replayed.toLocaleString("en")} replayed`;
  return nextAttemptAt === null ? "when a worker is free" : <Time at={nextAttemptAt} now={now} />;
}

function GroupActions({
  view,
  group: { status, code },
  partner,
}: {
  view: View;
  group: StuckGroup;
  partner: string | undefined;
}): VNode | null {
  if (!view.roles.includes("operator")) return null;
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
    <ConfirmForm
      view={view}
      role="operator"
      action="/stuck/retry-now"
      verb="Try now"
      fields={code === null ? {} : { code }}
    >
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

export function eventColumns({ now }: View): Column<StuckEvent>[] {
  return [
    { title: "Event", isName: true, cell: ({ id }) => <EventLink id={id} /> },
    { title: "Received", cell: ({ receivedAt }) => <Time at={receivedAt} now={now} none="unknown" /> },
    {
      title: "Status",
      cell: ({ status, kind }) => (
        <span class="nowrap">
          {status !== "applied" && <Badge tone={toneOf[status]}>{status}</Badge>} {kind ?? "?"}
        </span>
      ),
    },
    {
      title: "Partner",
      cell: ({ partner }) => (partner === null ? "?" : <a href={paths.partner(partner)}>{partner}</a>),
    },
    {
      title: "Booking",
      cell: ({ partner, reference, referenceKind }) =>
        partner === null || reference === null ? (
          "?"
        ) : (
          <BookingLink partner={partner} reference={reference} referenceKind={referenceKind} />
        ),
    },
    {
      title: "Why, and when it is tried again",
      cell: (event) => (
        <>
          <Text value={event.why} limit={240} /> <small class="line">{describeAgain(event, now)}</small>
        </>
      ),
    },
  ];
}

function describeAgain({ status, nextAttemptAt }: StuckEvent, now: Date): ComponentChildren {
  if (status === "dead") return "Tried again when it is replayed";
  if (nextAttemptAt === null) return "Tried when a worker is free";
  return (
    <>
      Tried again <Time at={nextAttemptAt} now={now} />
    </>
  );
}
