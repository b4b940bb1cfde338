// <Facts facts={[["Received", receivedAt], ["Event", <Id … />]]} />: what is known of one thing, as pairs. Those without a value are left out.
import type { ComponentChildren, VNode } from "preact";
import { Shown } from "./shown.tsx";

export type Fact = readonly [name: string, value: ComponentChildren];

export function Facts({ facts }: { facts: readonly Fact[] }): VNode {
  return (
    <dl class="facts">
      {facts
        .filter(([, value]) => value !== null && value !== undefined && value !== "")
        .map(([name, value]) => (
          <div>
            <dt>{name}</dt>
            <dd>
              <Shown value={value} />
            </dd>
          </div>
        ))}
    </dl>
  );
}
