import type { Context } from "@booking-events/operations";
import type { Logger } from "@booking-events/runtime";
import type { Tasks } from "./tasks/tasks.ts";

/** What all pages share. A page that reads or acts uses its request's `operations`, which knows who asks. */
export interface ConsoleContext {
  operations: Omit<Context, "notify">;
  /** Where docs/runbook.md can be read, without a hash. Undefined: nobody has said. */
  runbookUrl: string | undefined;
  /** Aborts when the process has been told to stop: what lasts must end. */
  stopping: AbortSignal;
  /** What takes longer than a request. */
  tasks: Tasks;
  logger: Logger;
}
