import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";

const root = join(import.meta.dirname, "../..");
const read = (path: string) => readFileSync(join(root, path), "utf8");

interface Alert {
  alert: string;
  labels: Record<string, string>;
  annotations: { runbook_url: string };
}

type Rule = Alert | { record: string };

interface Scenario {
  name: string;
  promql_expr_test: { exp_samples?: { labels: string }[] }[];
}

const rules = "deploy/observability/rules";
const texts = ["booking-events", "data-services"].map((file) => read(`${rules}/${file}.yml`));
const groups: { rules: Rule[] }[] = texts.flatMap((text) => parse(text).groups);
const alerts = groups.flatMap((group) => group.rules).filter((rule) => "alert" in rule);
const names = new Set(alerts.map(({ alert }) => alert));
const scenarios: Scenario[] = globSync(`${rules}/tests/*.yml`, { cwd: root }).flatMap(
  (file) => parse(read(file)).tests,
);

test("every alert leads to its section of the runbook, where the operator keeps it", () => {
  const headings = read("docs/runbook.md").match(/(?<=^## ).+$/gm);
  for (const { alert, annotations } of alerts) {
    expect(headings).toContain(alert);
    expect(annotations.runbook_url).toBe(
      `{{ or $externalLabels.bookings_runbook "docs/runbook.md" }}#${alert.toLowerCase()}`,
    );
  }
});

test("every alert has a scenario in which it fires, and one in which it is about to and does not", () => {
  const expected = scenarios.flatMap(({ promql_expr_test }) => promql_expr_test.flatMap((at) => at.exp_samples ?? []));
  const fired = expected.flatMap(({ labels }) => /alertname="(\w+)"/.exec(labels)?.[1] ?? []);
  expect(new Set(fired)).toEqual(names);
  const spared = scenarios.flatMap(({ name }) => /^(\w+): /.exec(name)?.[1] ?? []);
  expect(new Set(spared)).toEqual(names);
});

test("every recorded series is compared with what it must be", () => {
  const recorded = groups.flatMap((group) => group.rules).flatMap((rule) => ("record" in rule ? rule.record : []));
  const expected = scenarios.flatMap(({ promql_expr_test }) => promql_expr_test.flatMap((at) => at.exp_samples ?? []));
  const compared = new Set(expected.map(({ labels }) => /^[\w:]+/.exec(labels)?.[0]));
  expect(recorded.filter((record) => !compared.has(record))).toEqual([]);
});

// `npm run alerts` writes the files. Kustomize can't put one file into another.
test.each([
  ["booking-events", "base"],
  ["data-services", "data-services-alerts"],
])("the rules of %s for Kubernetes are those of Prometheus", async (file, folder) => {
  const text = read(`${rules}/${file}.yml`);
  const head = `# ${rules}/${file}.yml for the Prometheus operator: \`npm run alerts\` writes this.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: ${file}
  labels:
    app.kubernetes.io/name: booking-events
spec:
`;
  const indented = text.slice(text.indexOf("groups:\n")).replaceAll(/^(?=.)/gm, "  ");
  // An Alertmanager that others use, too, routes by it.
  const labelled = indented.replaceAll(/^( *)severity: \w+$/gm, "$&\n$1app: booking-events");
  const path = `deploy/kubernetes/${folder}/alerts.yaml`;
  await expect(head + labelled).toMatchFileSnapshot(join(root, path));
  const written: Rule[] = parse(read(path)).spec.groups.flatMap((group: { rules: Rule[] }) => group.rules);
  const ofAlerts = written.flatMap((one) => ("alert" in one ? [one.labels] : []));
  expect(ofAlerts).not.toHaveLength(0);
  for (const labels of ofAlerts) expect(labels).toMatchObject({ severity: expect.any(String), app: "booking-events" });
});
