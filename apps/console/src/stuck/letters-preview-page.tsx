import { maxLetters, type StuckEvent } from "@booking-events/operations";
import type { VNode } from "preact";
import { type Fact, Facts } from "../page/facts.tsx";
import { Layout } from "../page/layout.tsx";
import { formatNumber } from "../page/numbers.ts";
import { Card } from "../page/section.tsx";
import { TableSection } from "../page/table.tsx";
import { Text } from "../page/text.tsx";
import { useRole } from "../page/view.ts";
import type { LetterFilter } from "./run-letters.ts";
import { eventColumns } from "./stuck-page.tsx";

interface LettersPreviewProps {
  kind: "replay" | "discard";
  filter: LetterFilter;
  /** How many open dead letters match, by their codes. */
  counts: readonly { errorCode: string; count: number; inQueue: number }[];
  examples: readonly StuckEvent[];
}

/** What a replay, or a discard, of all that match would do. */
export function LettersPreviewPage({ kind, filter, counts, examples }: LettersPreviewProps): VNode {
  const total = counts.reduce((sum, { count }) => sum + count, 0);
  const mayAct = useRole("operator");
  const verb = kind === "replay" ? "Replay" : "Discard";
  return (
    <Layout
      title={`${verb} dead letters`}
      intro={
        kind === "replay"
          ? "They go back into the queue, each with its id and its place in the order. Fix the cause first."
          : "They are closed, and never applied. What they sent stays until it is too old."
      }
    >
      <Card>
        <Facts facts={describeFilter(filter, counts, total)} />
        {total > 0 && mayAct && (
          <form class="act" method="post" action={`/stuck/${kind}`}>
            {filter.partner !== undefined && <input type="hidden" name="partner" value={filter.partner} />}
            {filter.code !== undefined && <input type="hidden" name="code" value={filter.code} />}
            <input type="hidden" name="until" value={filter.until.toISOString()} />
            {kind === "discard" && (
              <label>
                Reason <small>kept with each; write nothing of a guest’s</small>
                <input name="reason" required maxLength={200} autocomplete="off" />
              </label>
            )}
            <button type="submit" class={`button ${kind === "discard" ? "button-danger" : "button-primary"}`}>
              {verb} {formatNumber(Math.min(total, maxLetters))}
            </button>
          </form>
        )}
      </Card>
      <TableSection
        title="The oldest of them"
        id="examples"
        columns={eventColumns}
        rows={examples}
        empty="No open dead letter matches."
      />
    </Layout>
  );
}

function describeFilter(
  { partner, code, until }: LetterFilter,
  counts: LettersPreviewProps["counts"],
  total: number,
): Fact[] {
  const replayed = counts.reduce((sum, { inQueue }) => sum + inQueue, 0);
  const codes = counts.map(({ errorCode, count }) => `${errorCode}: ${formatNumber(count)}`).join(", ");
  return [
    ["Dead letters", total],
    ["Partner", partner ?? "all"],
    ["Code", code ?? "all"],
    ["By code", total > 0 && code === undefined ? <Text value={codes} limit={300} /> : null],
    ["Replayed already", replayed === 0 ? null : `${formatNumber(replayed)}, without a result yet`],
    ["Failed before", until],
  ];
}
