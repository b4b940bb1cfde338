import type { VNode } from "preact";

export function TasksLink(): VNode {
  return (
    <a class="button button-quiet" href="/tasks">
      Tasks
    </a>
  );
}
