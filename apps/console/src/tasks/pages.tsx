import type { Pages } from "../server/pages.ts";
import { Refusal } from "../server/refusal.ts";
import { TaskPage, TasksPage } from "./task-page.tsx";

export function addTaskPages(pages: Pages): void {
  const { tasks } = pages.context;
  pages.show("/tasks", () => <TasksPage tasks={tasks.list()} />);
  pages.show("/tasks/:id", ({ param }) => {
    const task = tasks.find(param("id"));
    if (task !== undefined) return <TaskPage task={task} />;
    throw new Refusal(
      404,
      "No such task",
      "Its process has ended, or it is long over. Audit says what it has done. It can be begun again safely.",
    );
  });
  pages.act(
    "/tasks/:id/cancel",
    ({ param }) => `/tasks/${param("id")}`,
    async ({ param }) => (tasks.cancel(param("id")) ? "It is being cancelled." : "It had ended already."),
  );
}
