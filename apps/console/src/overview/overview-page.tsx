import type { VNode } from "preact";
import { Layout } from "../page/layout.tsx";
import { Section } from "../page/section.tsx";
import { Empty } from "../page/table.tsx";
import { Text } from "../page/text.tsx";
import type { View } from "../page/view.ts";

export function OverviewPage({ view, concerns }: { view: View; concerns: readonly string[] }): VNode {
  return (
    <Layout view={view} title="Overview" intro="Does it get through?">
      <Section title="Needs attention">
        {concerns.length === 0 ? (
          <Empty>Nothing needs attention.</Empty>
        ) : (
          <ul class="problems">
            {concerns.map((concern) => (
              <li>
                <Text value={concern} limit={600} />
              </li>
            ))}
          </ul>
        )}
      </Section>
    </Layout>
  );
}
