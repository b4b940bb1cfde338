import { stringify } from "yaml";
import { createDashboards } from "./dashboards.ts";
import { createRules } from "./rules.ts";

const origin = "# Generated: change scripts/observability, and run `npm run observability`.\n";
const layout = { lineWidth: 0, blockQuote: "literal" } as const;

/** @returns the text of each file, by its path in the repository */
export function generateFiles(): Record<string, string> {
  const groups = createRules();
  return {
    "deploy/observability/rules/booking-events.yml": origin + stringify({ groups }, layout),
    "deploy/kubernetes/base/alerts.yaml": origin + stringify(toPrometheusRule(groups), layout),
    ...Object.fromEntries(
      Object.entries(createDashboards()).map(([name, dashboard]) => [
        `deploy/observability/dashboards/${name}.json`,
        `${JSON.stringify(dashboard, null, 2)}\n`,
      ]),
    ),
  };
}

function toPrometheusRule(groups: ReturnType<typeof createRules>): object {
  return {
    apiVersion: "monitoring.coreos.com/v1",
    kind: "PrometheusRule",
    metadata: { name: "booking-events", labels: { "app.kubernetes.io/name": "booking-events" } },
    spec: { groups },
  };
}
