import {
  type ActingContext,
  discardDeadLetters,
  findEvent,
  findLettersOf,
  isUuid,
  type LookedUpEvent,
  lookUpEvent,
  outcomes,
  replayDeadLetters,
  searchLog,
} from "@booking-events/operations";
import { eventKinds } from "@booking-events/schema";
import type { PageRequest } from "../server/page-request.ts";
import type { Pages } from "../server/pages.ts";
import { Refusal } from "../server/refusal.ts";
import { readReason } from "../stuck/read-reason.ts";
import { EventPage } from "./event-page.tsx";
import { EventsPage } from "./events-page.tsx";

const pageSize = 50;

export function addEventPages(pages: Pages): void {
  pages.show("/events", async ({ operations, query, given, time, eventId }) => {
    const search = await searchLog(operations, {
      partner: given("partner"),
      secret: given("secret"),
      kind: eventKinds.find((kind) => kind === given("kind")),
      outcome: outcomes.find((outcome) => outcome === given("outcome")),
      since: time("since"),
      until: time("until"),
      before: eventId("before"),
      limit: pageSize,
    });
    return <EventsPage query={query} search={search} />;
  });
  pages.show("/events/:id", async (request) => <EventPage found={await lookUp(request.operations, readId(request))} />);
  const to = ({ param }: PageRequest) => `/events/${param("id")}`;
  pages.act("/events/:id/replay", to, (request) => replay(request.operations, readId(request)));
  pages.act("/events/:id/discard", to, async (request) =>
    discard(request.operations, readId(request), readReason(request.form)),
  );
}

function readId({ param }: PageRequest): string {
  const id = param("id");
  if (isUuid(id)) return id.toLowerCase();
  throw new Refusal(404, "No such event", "An event’s id is a UUID. Check how it is spelt.");
}

/** An event's id does not tell whether it is of a test partner. */
async function lookUp(operations: ActingContext, id: string): Promise<LookedUpEvent> {
  const real = await lookUpEvent(operations, id);
  const { found, queueProblem } = real.found ? real : await lookUpEvent({ ...operations, isTest: true }, id);
  const unseen = queueProblem === null ? null : `The queue was not looked at: ${queueProblem}`;
  if (found === undefined)
    throw unseen === null
      ? new Refusal(404, "No such event", "It is neither in the queue nor in the log, nor a dead letter.")
      : new Refusal(503, "Not found so far", `It is neither in the log nor a dead letter. ${unseen}`);
  if (found !== real.found) operations.notify("The event is of a test partner.");
  if (unseen !== null) operations.notify(unseen);
  return found;
}

/** Those of test partners, if the event's dead letter is among them. */
async function chooseLetters(operations: ActingContext, id: string): Promise<ActingContext> {
  const ofTests = { ...operations, isTest: true };
  return (await findEvent(ofTests, id)).deadLetter === undefined ? operations : ofTests;
}

async function replay(context: ActingContext, id: string): Promise<string> {
  const operations = await chooseLetters(context, id);
  const letters = await findLettersOf(operations, [id]);
  // The page tells what becomes of it. A worker may need longer than a request.
  const [replayed] = await replayDeadLetters(operations, letters, { isAwaited: false });
  return replayed?.result === "waiting"
    ? "It is back in the queue. Load the page again to see what has become of it."
    : `It was not replayed: ${replayed?.detail}.`;
}

async function discard(context: ActingContext, id: string, reason: string): Promise<string> {
  const operations = await chooseLetters(context, id);
  const letters = await findLettersOf(operations, [id]);
  const [discarded] = await discardDeadLetters(operations, letters, { reason });
  if (discarded?.result === "discarded") return "It is discarded, and will never be applied.";
  return discarded?.result === "applied"
    ? `It had been applied (${discarded.detail}), so it can’t be discarded.`
    : `It was closed already: ${discarded?.detail}.`;
}
