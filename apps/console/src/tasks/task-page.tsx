import type { VNode } from "preact";
import { Badge, type Tone } from "../page/badge.tsx";
import { Layout, Notice } from "../page/layout.tsx";
import { type Column, TableSection } from "../page/table.tsx";
import { Text } from "../page/text.tsx";
import { Time } from "../page/time.tsx";
import { useRole, useView } from "../page/view.ts";
import { RestoreReportView } from "../restore/restore-report-view.tsx";
import { LettersReportView } from "../stuck/letters-report-view.tsx";
import type { Report, Task } from "./tasks.ts";
import { TasksLink } from "./tasks-link.tsx";

/** While a task runs, the script fetches its page again so often. */
const refreshSeconds = 2;

/** One task: how far it is, and what it has done. */
export function TaskPage({ task }: { task: Task }): VNode {
  const { path } = useView();
  const mayCancel = useRole("operator");
  const isRunning = task.state === "running";
  return (
    <Layout
      title={nameOf(task.report)}
      intro="A task of this process. If the process ends, begin it again: what was done is not done twice."
      actions={<TasksLink />}
    >
      <div id="task" data-refresh={isRunning ? refreshSeconds : undefined}>
        <div class="point-head">
          <p>
            <State task={task} /> begun <Time at={task.beganAt} /> by <Text value={task.by} />
            {task.endedAt !== null && `, took ${describeDuration(task)}`}
          </p>
          {isRunning && (
            <span class="actions">
              <a class="button" href={path}>
                Load again
              </a>
              {mayCancel && (
                <form method="post" action={`/tasks/${task.id}/cancel`}>
                  <button type="submit" class="button">
                    Cancel
                  </button>
                </form>
              )}
            </span>
          )}
        </div>
        {task.problem !== null && (
          <Notice tone="problem">
            <Text value={task.problem} limit={600} />
          </Notice>
        )}
        {task.state === "cancelled" && <Notice tone="remark">It was cancelled. What was done until then stays.</Notice>}
        {task.remarks.map((remark) => (
          <Notice tone="remark">
            <Text value={remark} limit={600} />
          </Notice>
        ))}
        {task.report.kind === "restore" ? (
          <RestoreReportView task={task} report={task.report} />
        ) : (
          <LettersReportView task={task} report={task.report} />
        )}
      </div>
    </Layout>
  );
}

export function TasksPage({ tasks }: { tasks: readonly Task[] }): VNode {
  const columns: Column<Task>[] = [
    { title: "Task", isName: true, cell: ({ id, report }) => <a href={`/tasks/${id}`}>{nameOf(report)}</a> },
    { title: "State", cell: (task) => <State task={task} /> },
    { title: "Begun", cell: ({ beganAt }) => beganAt },
    { title: "By", cell: ({ by }) => by },
  ];
  return (
    <Layout title="Tasks" intro="What takes longer than a request. Audit has what was done for good.">
      <TableSection title="Of this process, the newest first" columns={columns} rows={tasks} empty="There are none." />
    </Layout>
  );
}

const tones = { running: "info", done: "good", failed: "bad", cancelled: "warn" } satisfies Record<Task["state"], Tone>;

function State({ task: { state } }: { task: Task }): VNode {
  return <Badge tone={tones[state]}>{state}</Badge>;
}

function nameOf(report: Report): string {
  if (report.kind !== "restore") return report.kind === "replay" ? "Replay of dead letters" : "Discard of dead letters";
  return report.isPreview ? "Preview of a restore" : "Restore of bookings";
}

function describeDuration({ beganAt, endedAt }: Task): string {
  const ms = (endedAt ?? beganAt).getTime() - beganAt.getTime();
  return ms < 1_000 ? `${ms} ms` : `${(ms / 1_000).toFixed(1)} s`;
}
