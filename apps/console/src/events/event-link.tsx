import type { VNode } from "preact";
import { paths } from "../page/paths.tsx";

/** To the page of an event. Its id is shortened to its end, which is random: it begins with the time of receipt. */
export function EventLink({ id }: { id: string }): VNode {
  return (
    <a class="id nowrap" href={paths.event(id)} title={id}>
      <span class="hidden">Event {id}</span>
      <span aria-hidden="true">…{id.slice(-8)}</span>
    </a>
  );
}
