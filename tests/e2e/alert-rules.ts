import { readFileSync } from "node:fs";
import { parse } from "yaml";

export interface RuleGroup {
  name: string;
  interval?: string;
  rules: Rule[];
}

/** It has either the name of an alert or that of a recorded series. */
interface Rule {
  alert?: string;
  record?: string;
  expr: string;
  for?: string;
}

export const rulesFolder = "deploy/observability/rules";

export function readRuleGroups(): RuleGroup[] {
  return parse(readFileSync(`${rulesFolder}/booking-events.yml`, "utf8")).groups;
}

/** Makes all durations of the rules shorter by a factor, so that a test need not wait for hours. */
export function speedUp(groups: RuleGroup[], factor: number): RuleGroup[] {
  const shorten = (duration: string) => `${Math.max(1, Math.round((secondsOf(duration) * 1_000) / factor))}ms`;
  // Whole minutes in seconds are durations too, such as those that a rate is multiplied by or an age compared with.
  const shortenIn = (expression: string) =>
    expression.replaceAll(/"[^"]*"|\b\d+[smhd]\b|\b\d+\b/g, (text) => {
      if (/[smhd]$/.test(text)) return shorten(text);
      return Number(text) > 0 && Number(text) % 60 === 0 ? String(Number(text) / factor) : text;
    });
  return groups.map(({ rules, ...group }) => ({
    ...group,
    ...(group.interval === undefined ? {} : { interval: shorten(group.interval) }),
    rules: rules.map((rule) => ({
      ...rule,
      expr: shortenIn(rule.expr),
      ...(rule.for === undefined ? {} : { for: shorten(rule.for) }),
    })),
  }));
}

/** @param duration as Prometheus writes it, such as "90s" or "1d" */
function secondsOf(duration: string): number {
  const units = { s: 1, m: 60, h: 3_600, d: 86_400 };
  return Number.parseInt(duration, 10) * units[duration.slice(-1) as keyof typeof units];
}
