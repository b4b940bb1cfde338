// <Pagination query={query} parameter="before" next="123" />: links to the first and the following page, which keep the filters.
import type { VNode } from "preact";
import { useView } from "./view.ts";

interface PaginationProps {
  query: URLSearchParams;
  /** Says where a page begins. The first page has none. */
  parameter: string;
  /** Of the following page. Null: this is the last one. */
  next: string | null;
}

export function Pagination({ query, parameter, next }: PaginationProps): VNode | null {
  const { path } = useView();
  const isFirst = !query.has(parameter);
  const kept = [...query].filter(([name, value]) => name !== parameter && value !== "");
  const pathOf = (...begin: [string, string][]) => `${path}?${new URLSearchParams([...kept, ...begin])}`;
  if (isFirst && next === null) return null;
  return (
    <nav class="pages" aria-label="Pages of the list">
      {isFirst ? <span /> : <a href={pathOf()}>First page</a>}
      {next === null ? (
        <span class="faint">That is all.</span>
      ) : (
        <a rel="next" href={pathOf([parameter, next])}>
          Next page
        </a>
      )}
    </nav>
  );
}
