import { describeCount } from "@booking-events/operations";
import type { VNode } from "preact";
import { EventLink } from "../events/event-link.tsx";
import { type Fact, Facts } from "../page/facts.tsx";
import { formatNumber } from "../page/numbers.ts";
import { Card } from "../page/section.tsx";
import { type Column, TableSection } from "../page/table.tsx";
import { Text } from "../page/text.tsx";
import type { Task } from "../tasks/tasks.ts";
import type { LettersReport } from "./letters-report.ts";

/** What becomes of dead letters that are replayed, or discarded. */
export function LettersReportView({ task, report }: { task: Task; report: LettersReport }): VNode {
  const { kind, examples } = report;
  const isOver = task.state !== "running";
  return (
    <>
      <Card>
        <progress value={report.handled} max={Math.max(1, report.total)} aria-label="Handled" />
        <Facts facts={describe(report, isOver)} />
      </Card>
      {isOver && (
        <TableSection
          title={kind === "replay" ? "Not applied" : "Not discarded"}
          id="examples"
          columns={columns}
          rows={examples}
          empty="None."
        />
      )}
    </>
  );
}

function describe({ kind, filter, total, handled, results }: LettersReport, isOver: boolean): Fact[] {
  const found = [...results].map(([result, count]) => `${formatNumber(count)} ${result}`).join(", ");
  return [
    ["Partner", filter.partner ?? "all"],
    ["Code", filter.code ?? "all"],
    ["Dead letters", describeCount(total, "letter")],
    [kind === "replay" ? "Back in the queue, or closed" : "Closed", handled],
    ["Results", found || (isOver ? "none" : kind === "replay" ? "are waited for" : null)],
  ];
}

const columns: Column<LettersReport["examples"][number]>[] = [
  { title: "Event", isName: true, cell: ({ eventId }) => <EventLink id={eventId} /> },
  { title: "Result", cell: ({ result }) => result },
  { title: "Why", isWide: true, cell: ({ detail }) => <Text value={detail} limit={300} /> },
];
