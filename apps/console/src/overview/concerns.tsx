import type { Concern } from "@booking-events/operations";
import type { VNode } from "preact";
import { paths } from "../page/paths.ts";
import { RunbookLink } from "../page/runbook-link.tsx";
import { Text } from "../page/text.tsx";

/** What needs a person, before all else on a page. */
export function Concerns({
  concerns,
  unresolvedGuests,
  runbookUrl,
}: {
  concerns: readonly Concern[];
  unresolvedGuests: number;
  runbookUrl: string | undefined;
}): VNode {
  if (concerns.length === 0 && unresolvedGuests > 0)
    return (
      <p class="notice notice-remark" role="status">
        Everything runs. Look at <a href="/arrivals">the guests who arrive soon</a>: something is unresolved.
      </p>
    );
  if (concerns.length === 0)
    return (
      <p class="notice notice-done" role="status">
        Nothing needs attention.
      </p>
    );
  return (
    <section aria-labelledby="attention">
      <h2 id="attention" class="attention">
        Needs attention <span class="count">{concerns.length}</span>
      </h2>
      <ul class="problems">
        {concerns.map((concern) => (
          <li>
            <Text value={withoutReference(concern.text)} limit={600} />
            <span class="links">
              <AboutLink concern={concern} />
              {concern.runbook !== null && <RunbookLink view={{ runbookUrl }} section={concern.runbook} />}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function AboutLink({ concern: { about, runbook } }: { concern: Concern }): VNode | null {
  if (about !== undefined && "partner" in about) return <a href={paths.partner(about.partner)}>{about.partner}</a>;
  if (about !== undefined) return <a href={paths.subscription(about.reader)}>{about.reader}</a>;
  const isOfEvents = ["DeadLettersOpen", "OldestEventWaits", "AttemptsFail"].includes(runbook ?? "");
  return isOfEvents ? <a href="/stuck">Stuck events</a> : null;
}

/** The link beside the text says it. */
const withoutReference = (text: string) => text.replace(/ See "\w+" in docs\/runbook\.md\.$/, "");
