import type { VNode } from "preact";

/** To the page of an event. Its id is shortened: it begins with the time, and ends at random. */
export function EventLink({ id }: { id: string }): VNode {
  return (
    <a class="id nowrap" href={`/events/${encodeURIComponent(id)}`} title={id}>
      <span class="hidden">Event {id}</span>
      <span aria-hidden="true">
        {id.slice(0, 8)}…{id.slice(-8)}
      </span>
    </a>
  );
}
