// <RunbookLink section="RedisMemoryHigh" />: to a section of docs/runbook.md.
import type { VNode } from "preact";
import { useView } from "./view.ts";

export function RunbookLink({ section }: { section: string }): VNode {
  const { runbookUrl } = useView();
  const anchor = section.toLowerCase().replaceAll(" ", "-");
  if (runbookUrl === undefined) return <span class="faint">See {section} in docs/runbook.md</span>;
  return <a href={`${runbookUrl}#${anchor}`}>Runbook: {section}</a>;
}
