/** Runs operators' commands in one process, one after the other: to start a process takes longer than most commands. */

import { runOps } from "@booking-events/ops/testing/run-ops";

process.on("message", async ({ args, environment }: { args: string[]; environment: Record<string, string> }) => {
  process.send?.(await runOps(args, { environment }));
});
