import {
  describeCount,
  type PlannedBooking,
  type RestoreResults,
  type RestoreSummary,
} from "@booking-events/operations";
import type { ComponentChildren, VNode } from "preact";
import { BookingLink } from "../events/booking-link.tsx";
import { Badge } from "../page/badge.tsx";
import { type Fact, Facts } from "../page/facts.tsx";
import { Card, Section } from "../page/section.tsx";
import { type Column, Table } from "../page/table.tsx";
import { Text } from "../page/text.tsx";
import type { Task } from "../tasks/tasks.ts";
import type { RestoreReport } from "./restore-report.ts";

const reasons = {
  same: "as it was, in state and content",
  new: "it has come since",
  "in-queue": "it has events that are not applied yet: wait, and begin again",
  "changed-meanwhile": "it was changed after the preview; the newer event wins",
  "not-in-log": "the log no longer has what it was",
  erased: "erased bookings never come back",
  unknown: "the partner has no such booking",
} satisfies Record<NonNullable<PlannedBooking["reason"]>, string>;

/** What a restore does, or would do. */
export function RestoreReportView({ task, report }: { task: Task; report: RestoreReport }): VNode {
  const { summary, restored, isPreview } = report;
  const canConfirm = isPreview && task.state === "done" && summary.restorable > 0;
  return (
    <>
      <Card>
        <Facts facts={[...describeRequest(report), ...describeSummary(report)]} />
        {canConfirm && (
          <form class="act" method="post" action="/restore">
            <input type="hidden" name="preview" value={task.id} />
            <button type="submit" class="button button-primary">
              Restore {describeCount(summary.restorable, "booking")}
            </button>
            <span class="faint">Bookings that change from now on are left as they are.</span>
          </form>
        )}
        {restored?.results && <Results results={restored.results} />}
      </Card>
      <Section
        title={isPreview ? "What would change" : "What changes"}
        id="bookings"
        hint={
          summary.omitted > 0 ? `${summary.omitted.toLocaleString("en")} more are counted, and not shown.` : undefined
        }
      >
        <Table
          caption="Bookings"
          isCaptionHidden
          columns={columns}
          rows={summary.shown}
          empty={task.state === "running" ? "Bookings are being read." : "No booking is other than it was."}
        />
      </Section>
    </>
  );
}

function describeRequest({ request, restored }: RestoreReport): Fact[] {
  const { partner, references, secret, at, deleteNew } = request;
  const logBegins = restored?.logBegins ?? null;
  return [
    ["Partner", <Text value={partner} />],
    ["Put back to", formatTime(at)],
    [
      "Bookings",
      references.length === 0 ? "all that have changed since" : describeCount(references.length, "reference"),
    ],
    ["Changed by secret", secret && <Text value={secret} />],
    ["New bookings", deleteNew ? "are deleted" : "stay"],
    ["Log", logBegins !== null && logBegins > at ? `it begins at ${formatTime(logBegins)}, after that time` : null],
  ];
}

function describeSummary({ summary, waitsFor }: RestoreReport): Fact[] {
  const { counts, changedByOthers, withDeadLetters, queued } = summary;
  return [
    ["Put back", describeCount(counts.update, "booking")],
    ["Deleted", describeCount(counts.delete, "booking")],
    ["Left as they are", describeLeft(counts)],
    ["Fields", summary.fields.size === 0 ? null : <Text value={describeFields(summary.fields)} limit={300} />],
    [
      "Changes of others",
      changedByOthers === 0
        ? null
        : `${describeCount(changedByOthers, "booking")} had events of other secrets since, which are undone, too`,
    ],
    [
      "Dead letters",
      withDeadLetters === 0 ? null : `${describeCount(withDeadLetters, "booking")} with open ones, which stay`,
    ],
    ["Queued", queued === 0 ? null : describeCount(queued, "event")],
    ["Waits for room", waitsFor && <Text value={waitsFor} limit={300} />],
  ];
}

function describeLeft({ update: _update, delete: _delete, ...left }: RestoreSummary["counts"]): ComponentChildren {
  const some = Object.entries(left).filter(([, count]) => count > 0);
  if (some.length === 0) return null;
  return some.map(([reason, count]) => (
    <span class="line">
      {count.toLocaleString("en")}: {reasons[reason as keyof typeof reasons]}
    </span>
  ));
}

function describeFields(fields: Map<string, number>): string {
  const most = [...fields].sort(([, one], [, other]) => other - one);
  return most.map(([name, count]) => `${name} (${count.toLocaleString("en")})`).join(", ");
}

function Results({ results }: { results: RestoreResults }): VNode {
  const { applied, superseded, erased, dead, waiting } = results;
  const others = { superseded, erased, dead, waiting };
  const rest = Object.entries(others).flatMap(([what, count]) => (count === 0 ? [] : [`${count} ${what}`]));
  return (
    <p class="act">
      <Badge tone={dead > 0 ? "bad" : waiting > 0 ? "warn" : "good"}>{applied.toLocaleString("en")} applied</Badge>{" "}
      {rest.join(", ")}
      {waiting > 0 && ": they wait for a worker, and will be applied"}
      {dead > 0 && (
        <>
          : see <a href="/stuck">Stuck</a>
        </>
      )}
    </p>
  );
}

const columns: Column<PlannedBooking>[] = [
  {
    title: "Booking",
    isName: true,
    cell: ({ partner, reference, referenceKind }) => (
      <BookingLink partner={partner} reference={reference} referenceKind={referenceKind} />
    ),
  },
  {
    title: "What happens",
    cell: ({ action, reason }) =>
      action === null ? (
        <>
          <Badge tone="quiet">stays</Badge> <small class="line">{reason !== null && reasons[reason]}</small>
        </>
      ) : (
        <Badge tone={action === "delete" ? "warn" : "info"}>{action === "delete" ? "deleted" : "put back"}</Badge>
      ),
  },
  { title: "Fields", cell: ({ changedFields }) => <Text value={changedFields.join(", ")} limit={200} /> },
  {
    title: "Remarks",
    cell: ({ changesOfOthers, deadLetters }) =>
      [
        ...(changesOfOthers === 0 ? [] : [`${describeCount(changesOfOthers, "change")} of others undone`]),
        ...(deadLetters === 0 ? [] : [`${describeCount(deadLetters, "dead letter")}`]),
      ].join(", "),
  },
];

function formatTime(time: Date): string {
  return `${time.toISOString().slice(0, 23).replace("T", " ")} UTC`;
}
