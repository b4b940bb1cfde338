import { scenarios } from "./scenarios.ts";
import type { HabitResult, Remark, ScenarioResult, SenderReport } from "./sender-run.ts";

export function formatSenderReport(report: SenderReport): string {
  const { passed, failed, missing } = report;
  const lines = [
    ...report.scenarios.flatMap(formatScenario),
    ...report.habits.flatMap((habit) => formatResult(habit)),
    ...report.refused.map(({ status, message, count }) => `FAIL  ${count} refused with ${status}: ${message}`),
    ...report.violations.map((violation) => `FAIL  ${formatRemark(violation)}`),
    ...report.warnings.map((warning) => `warn  ${formatRemark(warning)}`),
  ];
  const hint =
    missing === 0 ? "" : ` Send at least ${scenarios.length} events, two of them about one booking, one after another.`;
  return [...lines, "", `${passed} passed, ${failed} failed, ${missing} without an event.${hint}`, ""].join("\n");
}

function formatScenario(scenario: ScenarioResult): string[] {
  const { attempts, delaysMs } = scenario;
  const delays = delaysMs.length === 0 ? "" : `, after ${delaysMs.join(", ")} ms`;
  return formatResult(scenario, attempts < 2 ? "" : ` (${attempts} attempts${delays})`);
}

const labels = { passed: "ok  ", failed: "FAIL", missing: "none" };

function formatResult({ name, outcome, demand, seen }: HabitResult, details = ""): string[] {
  const line = `${labels[outcome]}  ${name}${details}`;
  return outcome === "failed" ? [line, `      ${demand}`, ...seen.map((each) => `      Seen: ${each}`)] : [line];
}

function formatRemark({ code, propertyPath, message, count }: Remark): string {
  const place = propertyPath.length === 0 ? "" : ` at ${propertyPath.join(".")}`;
  return `${code}${place}, ${count === 1 ? "once" : `${count} times`}: ${message}`;
}
