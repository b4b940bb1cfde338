// <RunbookLink view={view} section="RedisMemoryHigh" />: to a section of docs/runbook.md.
import type { VNode } from "preact";
import type { View } from "./view.ts";

export function RunbookLink({ view, section }: { view: Pick<View, "runbookUrl">; section: string }): VNode {
  const anchor = section.toLowerCase().replaceAll(" ", "-");
  if (view.runbookUrl === undefined) return <span class="faint">See {section} in docs/runbook.md</span>;
  return <a href={`${view.runbookUrl}#${anchor}`}>Runbook: {section}</a>;
}
