import type { ReceiverReport } from "./check-receiver.ts";

export function formatReceiverReport({
  checks,
  passed,
  failed,
  skipped,
  runId,
  lookupProblem,
}: ReceiverReport): string {
  const labels = { passed: "ok  ", failed: "FAIL", skipped: "skip" };
  const lines = checks.flatMap(({ name, outcome, demand, seen }) => {
    const line = `${labels[outcome]}  ${name}`;
    return outcome === "failed" ? [line, `      ${demand}`, ...seen.map((each) => `      Seen: ${each}`)] : [line];
  });
  const skips = skipped === 0 ? "" : `, ${skipped} skipped`;
  const problem = lookupProblem === null ? [] : [lookupProblem];
  return [...lines, "", ...problem, `Run ${runId}: ${passed} passed, ${failed} failed${skips}.`, ""].join("\n");
}
