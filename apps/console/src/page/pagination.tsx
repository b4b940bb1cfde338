// <Pagination path="/events" query={query} next={{ before: "123" }} />: "Newest" and "Older" links that keep the filters.
// `next` sets the parameters that lead to the following page. Null: this is the last one.
import type { VNode } from "preact";

interface PaginationProps {
  path: string;
  query: URLSearchParams;
  next: Record<string, string> | null;
  /** The parameters that `next` sets: the first page has none of them. */
  parameters: readonly string[];
}

export function Pagination({ path, query, next, parameters }: PaginationProps): VNode | null {
  const isFirst = parameters.every((name) => !query.has(name));
  if (isFirst && next === null) return null;
  return (
    <nav class="pages" aria-label="Pages of the list">
      {isFirst ? <span /> : <a href={withParameters(path, query, {}, parameters)}>First page</a>}
      {next === null ? (
        <span class="faint">That is all.</span>
      ) : (
        <a rel="next" href={withParameters(path, query, next, parameters)}>
          Next page
        </a>
      )}
    </nav>
  );
}

function withParameters(
  path: string,
  query: URLSearchParams,
  set: Record<string, string>,
  drop: readonly string[],
): string {
  const kept = new URLSearchParams([...query].filter(([name, value]) => !drop.includes(name) && value !== ""));
  for (const [name, value] of Object.entries(set)) kept.set(name, value);
  return kept.size === 0 ? path : `${path}?${kept}`;
}
