import type Router from "@koa/router";
import type { ConsoleContext } from "../context.ts";
import { acting, type PageState, showing } from "../server/page-routes.ts";
import { Refusal } from "../server/refusal.ts";
import { TaskPage, TasksPage } from "./task-page.tsx";

export function addTaskRoutes(router: Router<PageState>, context: ConsoleContext): void {
  const { tasks } = context;
  router.get(
    "/tasks",
    showing(context, ({ view }) => <TasksPage view={view} tasks={tasks.list()} />),
  );
  router.get(
    "/tasks/:id",
    showing(context, ({ view, params }) => {
      const task = tasks.find(params["id"] ?? "");
      if (task !== undefined) return <TaskPage view={view} task={task} />;
      throw new Refusal(
        404,
        "No such task",
        "Its process has ended, or it is long over. Audit says what it has done. It can be begun again safely.",
      );
    }),
  );
  router.post(
    "/tasks/:id/cancel",
    acting(context, { role: "operator", to: ({ params }) => `/tasks/${params["id"]}` }, async ({ params }) =>
      tasks.cancel(params["id"] ?? "") ? "It is being cancelled." : "It had ended already.",
    ),
  );
}
