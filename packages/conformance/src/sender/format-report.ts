import type { SenderReport } from "./sender-run.ts";

export function formatSenderReport({ scenarios, refused, passed, failed, missing }: SenderReport): string {
  const labels = { passed: "ok  ", failed: "FAIL", missing: "none" };
  const lines = scenarios.flatMap(({ name, outcome, demand, seen, attempts, delaysMs }) => {
    const delays = delaysMs.length === 0 ? "" : `, after ${delaysMs.join(", ")} ms`;
    const line = `${labels[outcome]}  ${name}${attempts < 2 ? "" : ` (${attempts} attempts${delays})`}`;
    return outcome === "failed" ? [line, `      ${demand}`, ...seen.map((each) => `      Seen: ${each}`)] : [line];
  });
  const others = refused.map(({ status, message, count }) => `FAIL  ${count} refused with ${status}: ${message}`);
  const hint = missing === 0 ? "" : ` Send at least ${scenarios.length} events, each about another booking.`;
  const total = `${passed} passed, ${failed} failed, ${missing} without an event.${hint}`;
  return [...lines, ...others, "", total, ""].join("\n");
}
