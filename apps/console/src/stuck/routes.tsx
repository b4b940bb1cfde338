import {
  findStuck,
  groupLetters,
  groupStuck,
  isUuid,
  parseInstant,
  retryEventsNow,
  type StuckCause,
} from "@booking-events/operations";
import type Router from "@koa/router";
import type { ConsoleContext } from "../context.ts";
import { acting, type PageRequest, type PageState, showing } from "../server/page-routes.ts";
import { Refusal } from "../server/refusal.ts";
import { statuses } from "./describe-cause.ts";
import { LettersPreviewPage } from "./letters-preview-page.tsx";
import { readReason } from "./read-reason.ts";
import { type LetterFilter, maxLetters, runDiscard, runReplay } from "./run-letters.ts";
import { StuckPage } from "./stuck-page.tsx";

const pageSize = 50;
const maxExamples = 10;
/** Of each list of the queue: some milliseconds of Redis' time. */
const maxLooked = 20_000;

export function addStuckRoutes(router: Router<PageState>, context: ConsoleContext): void {
  router.get(
    "/stuck",
    showing(context, async ({ view, operations, query }) => {
      const partner = given(query, "partner");
      const cause = readCause(query);
      const grouped = await groupStuck(operations, { partner });
      const found = await findStuck(operations, {
        partner,
        cause,
        limit: pageSize,
        after: readAfter(query),
        maxLooked,
      });
      return <StuckPage {...{ view, query, partner, cause, grouped, found }} />;
    }),
  );
  for (const kind of ["replay", "discard"] as const) {
    router.get(
      `/stuck/${kind}`,
      showing(context, (request) => previewLetters(request, kind)),
    );
    router.post(
      `/stuck/${kind}`,
      acting(context, { role: "operator", to: () => "/stuck" }, async ({ operations, form }) => {
        const filter = readFilter(form);
        const { id } = await (kind === "replay"
          ? runReplay(context.tasks, operations, filter)
          : runDiscard(context.tasks, operations, filter, readReason(form)));
        return { notice: "It has begun.", to: `/tasks/${id}` };
      }),
    );
  }
  router.post(
    "/stuck/retry-now",
    acting(context, { role: "operator", to: () => "/stuck" }, async ({ operations, form }) => {
      const { counts, failure } = await retryEventsNow(operations, given(form, "code"));
      if (failure !== null) operations.notify(failure.message);
      return `${counts.retried.toLocaleString("en")} events are tried as soon as a worker is free.`;
    }),
  );
}

async function previewLetters({ view, operations, query }: PageRequest, kind: "replay" | "discard") {
  const filter = { partner: given(query, "partner"), code: given(query, "code"), until: view.now };
  const { partner, code, until } = filter;
  const counts = await groupLetters(operations, { partner, errorCode: code, until });
  const cause = { status: "dead" as const, code };
  const { events } = await findStuck(operations, { partner, cause, limit: maxExamples });
  return <LettersPreviewPage {...{ view, kind, filter, counts, maxLetters }} examples={events} />;
}

function given(parameters: URLSearchParams, name: string): string | undefined {
  return parameters.get(name)?.trim() || undefined;
}

function readCause(query: URLSearchParams): StuckCause | undefined {
  const status = statuses.find((known) => known === query.get("status"));
  return status && { status, code: given(query, "code") };
}

function readAfter(query: URLSearchParams): string | undefined {
  const after = given(query, "after");
  if (after === undefined || isUuid(after)) return after?.toLowerCase();
  throw new Refusal(400, "No such page", "The page begins with an event that has no valid id. Open Stuck again.");
}

/** Of the preview, which has counted what had failed by then. */
function readFilter(form: URLSearchParams): LetterFilter {
  const until = parseInstant(form.get("until") ?? "");
  if (until !== undefined) return { partner: given(form, "partner"), code: given(form, "code"), until };
  throw new Refusal(400, "No preview", "Look at the preview first, and then confirm it.");
}
