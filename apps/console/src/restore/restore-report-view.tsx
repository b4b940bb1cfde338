import { describeCount, describeRestore, type PlannedBooking, restoreReasons } from "@booking-events/operations";
import type { VNode } from "preact";
import { BookingLink } from "../events/booking-link.tsx";
import { Badge } from "../page/badge.tsx";
import { type Fact, Facts } from "../page/facts.tsx";
import { Card } from "../page/section.tsx";
import { type Column, TableSection } from "../page/table.tsx";
import { Text } from "../page/text.tsx";
import type { Task } from "../tasks/tasks.ts";
import type { RestoreReport } from "./restore-report.ts";

/** What a restore does, or would do. */
export function RestoreReportView({ task, report }: { task: Task; report: RestoreReport }): VNode {
  const { request, summary, restored, isPreview } = report;
  const canConfirm = isPreview && task.state === "done" && summary.restorable > 0;
  return (
    <>
      <Card>
        <Facts facts={[...describeRequest(report), ...describeRestore(summary, request.at, restored)]} />
        {canConfirm && (
          <form class="act" method="post" action="/restore">
            <input type="hidden" name="preview" value={task.id} />
            <button type="submit" class="button button-primary">
              Restore {describeCount(summary.restorable, "booking")}
            </button>
            <span class="faint">Bookings that change from now on are left as they are.</span>
          </form>
        )}
        {restored?.results && restored.results.dead > 0 && (
          <p class="act">
            Some events could not be applied: see <a href="/stuck">Stuck</a>
          </p>
        )}
      </Card>
      <TableSection
        title={isPreview ? "What would change" : "What changes"}
        id="bookings"
        hint={
          summary.omitted > 0 ? `${describeCount(summary.omitted, "booking")} more: counted, and not shown.` : undefined
        }
        columns={columns}
        rows={summary.shown}
        empty={task.state === "running" ? "Bookings are being read." : "No booking is other than it was."}
      />
    </>
  );
}

function describeRequest({ request, summary, restored, waitsFor }: RestoreReport): Fact[] {
  const { partner, references, secret, at, deleteNew } = request;
  return [
    ["Partner", partner],
    ["Put back to", `${at.toISOString().slice(0, 23).replace("T", " ")} UTC`],
    [
      "Bookings",
      references.length === 0 ? "all that have changed since" : describeCount(references.length, "reference"),
    ],
    ["Changed by secret", secret],
    ["New bookings", deleteNew ? "are deleted" : "stay"],
    ["Queued so far", restored === null && summary.queued > 0 ? summary.queued : null],
    ["Waits for room", waitsFor && <Text value={waitsFor} limit={300} />],
  ];
}

const columns: Column<PlannedBooking>[] = [
  { title: "Booking", isName: true, cell: (booking) => <BookingLink {...booking} /> },
  {
    title: "What happens",
    cell: ({ action, reason }) =>
      action === null ? (
        <>
          <Badge tone="quiet">stays</Badge> <small class="line">{reason !== null && restoreReasons[reason]}</small>
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
        ...(deadLetters === 0 ? [] : [describeCount(deadLetters, "dead letter")]),
      ].join(", "),
  },
];
