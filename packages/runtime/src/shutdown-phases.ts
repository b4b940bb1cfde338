import type { ShutdownPhase } from "./graceful-shutdown.ts";

/** The rest of the time is for closing connections, which takes no longer unless the other side is gone. */
const finishingShare = 0.8;

/**
 * The way down of every process of ours: first what is under way comes to its end, with four fifths of the time; then
 * the connections are closed, the health server among them.
 */
export function shutdownPhases(
  timeoutMs: number,
  { finishWork, closeConnections }: { finishWork: () => Promise<void>; closeConnections: () => Promise<void> },
): ShutdownPhase[] {
  return [
    { name: "finish work under way", limitMs: timeoutMs * finishingShare, run: finishWork },
    { name: "close connections", limitMs: timeoutMs * (1 - finishingShare), run: closeConnections },
  ];
}
