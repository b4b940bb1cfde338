import { OperationFailure, type RestoreRequest } from "@booking-events/operations";
import type { Tasks } from "../tasks/tasks.ts";

/**
 * A restore does what its preview has shown: what changed since stays as it is.
 *
 * @throws OperationFailure if the preview is unknown, or has not ended
 */
export function confirmPreview(tasks: Tasks, id: string): RestoreRequest {
  const report = tasks.find(id)?.report;
  if (report?.kind !== "restore" || !report.isPreview || report.restored === null)
    throw new OperationFailure("The preview is not known any more. Look at it again, and confirm that.");
  return { ...report.request, unlessChangedSince: report.restored.readAt };
}
