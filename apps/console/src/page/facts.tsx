// <Facts facts={[["Received", <Time … />], ["Secret", <Id … />]]} />: what is known of one thing, as pairs. Those with a null value are left out.
import type { ComponentChildren, VNode } from "preact";

export type Fact = readonly [name: string, value: ComponentChildren];

export function Facts({ facts }: { facts: readonly Fact[] }): VNode {
  return (
    <dl class="facts">
      {facts
        .filter(([, value]) => value !== null && value !== undefined)
        .map(([name, value]) => (
          <div>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}
