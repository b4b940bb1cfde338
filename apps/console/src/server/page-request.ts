import { type ActingContext, isUuid, parsePast } from "@booking-events/operations";
import type { View } from "../page/view.ts";
import { Refusal } from "./refusal.ts";

interface Given {
  view: View;
  /** As the visitor. What operations remark is shown on the page, or after the action. */
  operations: ActingContext;
  /** Of the path, decoded. */
  params: Record<string, string>;
  query: URLSearchParams;
  /** Of an action. */
  form: URLSearchParams;
}

/** What a page, or an action, is asked for. */
export class PageRequest {
  readonly view: View;
  readonly operations: ActingContext;
  readonly query: URLSearchParams;
  readonly form: URLSearchParams;
  readonly #params: Record<string, string>;

  constructor({ view, operations, params, query, form }: Given) {
    this.view = view;
    this.operations = operations;
    this.#params = params;
    this.query = query;
    this.form = form;
  }

  /** What the path has in a place. */
  readonly param = (name: string): string => this.#params[name] ?? "";

  /** What a form, or the query, has in a field that is not empty. */
  readonly given = (name: string): string | undefined =>
    (this.form.get(name) ?? this.query.get(name))?.trim() || undefined;

  /** @throws Refusal if a field has what is no past time */
  readonly time = (name: string): Date | undefined => {
    const text = this.given(name);
    return text === undefined ? undefined : toTime(text, this.view.now);
  };

  /** @throws Refusal if a field that names a page has what is no event's id */
  readonly eventId = (name: string): string | undefined => {
    const text = this.given(name);
    if (text === undefined || isUuid(text)) return text?.toLowerCase();
    throw new Refusal(400, "No such page", "It begins with an event that has no valid id. Begin with the first page.");
  };
}

/** @throws Refusal if it is none */
export function toTime(text: string, now: Date): Date {
  const time = parsePast(text, now);
  if (time !== undefined) return time;
  throw new Refusal(
    422,
    "Not a time",
    "Give a time such as 2026-11-20T14:00:00Z or 02:00 (in UTC), or how long ago, such as 2h. Nothing was done.",
  );
}
