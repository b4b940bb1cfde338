// <Badge tone="bad">dead</Badge>: a state in a word. Tones: good, warn, bad, info, quiet. The word must say it without the colour.
import type { ComponentChildren, VNode } from "preact";

export type Tone = "good" | "warn" | "bad" | "info" | "quiet";

export function Badge({ tone, children }: { tone: Tone; children: ComponentChildren }): VNode {
  return <span class={`badge badge-${tone}`}>{children}</span>;
}
