import type { Concern } from "@booking-events/operations";
import type { VNode } from "preact";
import { Notice } from "../page/layout.tsx";
import { PartnerLink, ReaderLink } from "../page/paths.tsx";
import { RunbookLink } from "../page/runbook-link.tsx";
import { Text } from "../page/text.tsx";

/** What needs a person, before all else on a page. */
export function Concerns({
  concerns,
  unresolvedGuests,
}: {
  concerns: readonly Concern[];
  unresolvedGuests: number;
}): VNode {
  if (concerns.length === 0 && unresolvedGuests > 0)
    return (
      <Notice tone="remark">
        Everything runs. Look at <a href="/arrivals">the guests who arrive soon</a>: something is unresolved.
      </Notice>
    );
  if (concerns.length === 0) return <Notice tone="done">Nothing needs attention.</Notice>;
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
              {concern.runbook !== null && <RunbookLink section={concern.runbook} />}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function AboutLink({ concern: { about, runbook } }: { concern: Concern }): VNode | null {
  if (about !== undefined && "partner" in about) return <PartnerLink id={about.partner} />;
  if (about !== undefined) return <ReaderLink name={about.reader} />;
  const isOfEvents = ["DeadLettersOpen", "OldestEventWaits", "AttemptsFail"].includes(runbook ?? "");
  return isOfEvents ? <a href="/stuck">Stuck events</a> : null;
}

/** The link beside the text says it. */
const withoutReference = (text: string) => text.replace(/ See "\w+" in docs\/runbook\.md\.$/, "");
