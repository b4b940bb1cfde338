import type { ShutdownPhase } from "./graceful-shutdown.ts";

/** The remaining time is for closing connections, which is fast unless the other side is unreachable. */
const finishingShare = 0.8;

/**
 * Returns the shutdown phases of every process: first work in progress is finished, with four fifths of the time; then
 * the connections are closed, including the health server's.
 */
export function shutdownPhases(
  timeoutMs: number,
  { finishWork, closeConnections }: { finishWork: () => Promise<void>; closeConnections: () => Promise<void> },
): ShutdownPhase[] {
  return [
    { name: "finish work in progress", limitMs: timeoutMs * finishingShare, run: finishWork },
    { name: "close connections", limitMs: timeoutMs * (1 - finishingShare), run: closeConnections },
  ];
}
