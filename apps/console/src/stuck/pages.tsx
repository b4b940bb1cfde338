import {
  findStuck,
  groupLetters,
  groupStuck,
  parseInstant,
  retryEventsNow,
  type StuckCause,
} from "@booking-events/operations";
import { formatNumber } from "../page/numbers.ts";
import type { PageRequest } from "../server/page-request.ts";
import type { Pages } from "../server/pages.ts";
import { Refusal } from "../server/refusal.ts";
import { statuses } from "./describe-cause.ts";
import { LettersPreviewPage } from "./letters-preview-page.tsx";
import { readReason } from "./read-reason.ts";
import { type LetterFilter, runDiscard, runReplay } from "./run-letters.ts";
import { StuckPage } from "./stuck-page.tsx";

const pageSize = 50;
const maxExamples = 10;
/** Of each list of the queue: some milliseconds of Redis' time. */
const maxLooked = 20_000;

export function addStuckPages(pages: Pages): void {
  const { tasks } = pages.context;
  const to = () => "/stuck";
  pages.show("/stuck", async (request) => {
    const { operations, query, given, eventId } = request;
    const [partner, cause, after] = [given("partner"), readCause(request), eventId("after")];
    const grouped = await groupStuck(operations, { partner });
    const found = await findStuck(operations, { partner, cause, limit: pageSize, after, maxLooked });
    return <StuckPage query={query} partner={partner} cause={cause} grouped={grouped} found={found} />;
  });
  for (const kind of ["replay", "discard"] as const) {
    pages.show(`/stuck/${kind}`, (request) => previewLetters(request, kind));
    pages.act(`/stuck/${kind}`, to, async (request) => {
      const filter = readFilter(request);
      const { id } = await (kind === "replay"
        ? runReplay(tasks, request.operations, filter)
        : runDiscard(tasks, request.operations, filter, readReason(request.form)));
      return { notice: "It has begun.", to: `/tasks/${id}` };
    });
  }
  pages.act("/stuck/retry-now", to, async ({ operations, given }) => {
    const { counts, failure } = await retryEventsNow(operations, given("code"));
    if (failure !== null) operations.notify(failure.message);
    return `${formatNumber(counts.retried)} events are tried as soon as a worker is free.`;
  });
}

async function previewLetters({ view, operations, given }: PageRequest, kind: "replay" | "discard") {
  const [partner, code, until] = [given("partner"), given("code"), view.now];
  const counts = await groupLetters(operations, { partner, errorCode: code, until });
  const { events } = await findStuck(operations, { partner, cause: { status: "dead", code }, limit: maxExamples });
  return <LettersPreviewPage kind={kind} filter={{ partner, code, until }} counts={counts} examples={events} />;
}

function readCause({ given }: PageRequest): StuckCause | undefined {
  const status = statuses.find((known) => known === given("status"));
  const code = given("code");
  if (status !== undefined) return { status, code };
  if (code === undefined) return undefined;
  throw new Refusal(422, "No status", "Choose a status, too. The code alone does not filter.");
}

/** Of the preview, which has counted what had failed by then. */
function readFilter({ given }: PageRequest): LetterFilter {
  const until = parseInstant(given("until") ?? "");
  if (until !== undefined) return { partner: given("partner"), code: given("code"), until };
  throw new Refusal(400, "No preview", "Look at the preview first, and then confirm it.");
}
