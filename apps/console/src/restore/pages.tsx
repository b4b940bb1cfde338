import type { Pages } from "../server/pages.ts";
import { confirmPreview } from "./confirm-preview.ts";
import { readRestoreRequest } from "./read-restore-request.ts";
import { RestorePage } from "./restore-page.tsx";
import { runRestore } from "./run-restore.ts";

export function addRestorePages(pages: Pages): void {
  const { tasks } = pages.context;
  const to = () => "/restore";
  pages.show("/restore", ({ query }) => <RestorePage query={query} />);
  pages.act("/restore/preview", to, async (request) => {
    const { id } = await runRestore(tasks, request.operations, readRestoreRequest(request), { isPreview: true });
    return { notice: "Nothing has been changed yet.", to: `/tasks/${id}` };
  });
  pages.act("/restore", to, async ({ operations, given }) => {
    const request = confirmPreview(tasks, given("preview") ?? "");
    const { id } = await runRestore(tasks, operations, request, { isPreview: false });
    return { notice: "The restore has begun.", to: `/tasks/${id}` };
  });
}
