import { setTimeout as sleep } from "node:timers/promises";
import { createLogger } from "@booking-events/runtime";
import { expect, test } from "vitest";
import type { RestoreReport } from "../restore/restore-report.ts";
import { Tasks } from "./tasks.ts";

const logger = createLogger({ name: "console", level: "silent" });
const operations = { by: "Ada", now: () => new Date() } as Parameters<Tasks["begin"]>[0];
const untilCancelled = (_: unknown, signal: AbortSignal) => sleep(60_000, undefined, { signal });

test.each(["before", "after"])("a process that is told to stop %s a task begins cancels it", async (when) => {
  const stopping = new AbortController();
  const tasks = new Tasks({ logger, stopping: stopping.signal });
  if (when === "before") stopping.abort();
  const task = await tasks.begin(operations, {} as RestoreReport, untilCancelled);
  stopping.abort();
  await tasks.untilEnded();
  expect(task.state).toBe("cancelled");
});
