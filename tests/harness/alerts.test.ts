import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";

const root = join(import.meta.dirname, "../..");
const read = (path: string) => readFileSync(join(root, path), "utf8");

interface Alert {
  alert: string;
  annotations: { runbook_url: string };
}

interface Scenario {
  name: string;
  promql_expr_test: { exp_samples?: { labels: string }[] }[];
}

const rules = "deploy/observability/rules";
const texts = ["booking-events", "data-services"].map((file) => read(`${rules}/${file}.yml`));
const groups: { rules: (Alert | { record: string })[] }[] = texts.flatMap((text) => parse(text).groups);
const alerts = groups.flatMap((group) => group.rules).filter((rule) => "alert" in rule);
const names = new Set(alerts.map(({ alert }) => alert));

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
  const files = globSync(`${rules}/tests/*.yml`, { cwd: root });
  const scenarios: Scenario[] = files.flatMap((file) => parse(read(file)).tests);
  const expected = scenarios.flatMap(({ promql_expr_test }) => promql_expr_test.flatMap((at) => at.exp_samples ?? []));
  const fired = expected.flatMap(({ labels }) => /alertname="(\w+)"/.exec(labels)?.[1] ?? []);
  expect(new Set(fired)).toEqual(names);
  const spared = scenarios.flatMap(({ name }) => /^(\w+): /.exec(name)?.[1] ?? []);
  expect(new Set(spared)).toEqual(names);
});

// `npm run alerts` writes the file. Kustomize can't put one file into another.
test("the rules of Kubernetes are those of Prometheus", async () => {
  const head = `# The files in deploy/observability/rules for the Prometheus operator: \`npm run alerts\` writes this.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: booking-events
  labels:
    app.kubernetes.io/name: booking-events
spec:
  groups:
`;
  const groupsOf = (text: string) => text.slice(text.indexOf("groups:\n") + "groups:\n".length);
  const indented = texts
    .map(groupsOf)
    .join("")
    .replaceAll(/^(?=.)/gm, "  ");
  await expect(head + indented).toMatchFileSnapshot(join(root, "deploy/kubernetes/base/alerts.yaml"));
});
