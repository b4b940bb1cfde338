// <Stats stats={[{ name: "Dead letters", value: "12", detail: "TypeError", tone: "bad", to: "/stuck" }]} />: a row of single numbers. A null value is "unknown".
import type { VNode } from "preact";

export interface Stat {
  name: string;
  /** Null: unknown. */
  value: string | null;
  detail?: string | undefined;
  tone?: "good" | "warn" | "bad" | undefined;
  /** The page that has more of it. */
  to?: string;
}

export function Stats({ stats }: { stats: readonly Stat[] }): VNode {
  return (
    <dl class="stats">
      {stats.map(({ name, value, detail, tone, to }) => (
        <div>
          <dt>{to === undefined ? name : <a href={to}>{name}</a>}</dt>
          <dd class={tone === undefined ? undefined : `tone-${tone}`}>{value ?? <span class="faint">unknown</span>}</dd>
          {detail !== undefined && <dd class="detail">{detail}</dd>}
        </div>
      ))}
    </dl>
  );
}
