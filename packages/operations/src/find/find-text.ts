import { findQueuedEvent, type QueuedEvent, type RecordedRefusal, subjectOf } from "@booking-events/queue";
import { describeError } from "@booking-events/runtime";
import { bookingReferenceOf, type ReferenceKind, referenceKindOf } from "@booking-events/schema";
import { type GuestSearch, toGuestSearch } from "@booking-events/store";
import { type Context, inBoth } from "../context.ts";
import { findEvent } from "../events/find-events.ts";
import { findGuestEverywhere } from "../guests/erase-guest.ts";
import { type Findings, type FoundGuest, findGuest } from "../guests/find-guest.ts";
import { isUuid } from "../is-uuid.ts";
import { OperationFailure } from "../operation-failure.ts";
import { findRefusals } from "../partners/find-refusals.ts";
import { readPartnersIfPossible } from "../services/partners-file.ts";
import { knowsRedis, withRedis } from "../services/queue.ts";

/** Something that a text leads to. It holds no value but references, which the operator has asked by or has ids for. */
export interface Found {
  what: "booking" | "event" | "dead letter" | "event in the queue" | "refused request";
  /** How it was found: `reference`, `event id`, `request id`, `email` or `phone`. */
  by: GuestSearch["by"] | "event id" | "request id";
  /** `near`: a similar contact, which may be another guest's. */
  closeness: "exact" | "near";
  partner: string | null;
  referenceKind: ReferenceKind | null;
  reference: string | null;
  eventId: string | null;
  /** Of a refused request. It became no event. */
  requestId?: string;
  /** A booking's state, an event's outcome, or why a request was refused. */
  state: string | null;
  /** It is of a test partner. */
  isTest: boolean;
}

export interface FoundByText {
  found: Found[];
  /** There may be more. */
  isCut: boolean;
  looked: string[];
  /** What could not be looked at, and why. */
  unseen: string[];
}

const maxFound = 200;
const refusalsKeptMs = 7 * 24 * 60 * 60 * 1_000;
/** A number of fewer digits is a reference, and no phone number. */
const minPhoneDigits = 7;

/** Finds what a text leads to: a reference, an id of an event or a request, an e-mail address or a phone number. */
export async function findText(context: Context, text: string): Promise<FoundByText> {
  const result: FoundByText = { found: [], isCut: false, looked: [], unseen: [] };
  const id = text.trim().toLowerCase();
  if (isUuid(id)) await findId(context, id, result);
  for (const search of searchesFor(text)) await findSearched(context, search, result);
  result.isCut = result.found.length > maxFound;
  result.found.splice(maxFound);
  return result;
}

/** Any text may be a reference. */
function searchesFor(text: string): GuestSearch[] {
  const digits = text.replaceAll(/\D/g, "").length;
  const isPhone = digits >= minPhoneDigits && /^[\s\d+().\-/]+$/.test(text);
  const kinds = ["reference", ...(text.includes("@") ? ["email"] : []), ...(isPhone ? ["phone"] : [])] as const;
  return kinds.flatMap((by) => toGuestSearch(by as GuestSearch["by"], text, undefined) ?? []);
}

/**
 * The queue is read before PostgreSQL: an event leaves it only after PostgreSQL has it. One that was posted alone has the id
 * of its request.
 */
async function findId(context: Context, id: string, result: FoundByText): Promise<void> {
  if (knowsRedis(context.environment)) await findQueued(context, id, result);
  else result.unseen.push("queue and refused requests: REDIS_URL is not set");
  await findStoredId(context, id, result);
  if (knowsRedis(context.environment))
    await findRefused(context, "request id", ({ requestId }) => requestId === id, result);
}

const byEventId = { by: "event id", closeness: "exact" } as const;
const nothing = { partner: null, referenceKind: null, reference: null };

async function findQueued(context: Context, id: string, { found, looked, unseen }: FoundByText): Promise<void> {
  const answer = await orUnseen("queue, by event id", unseen, async () => ({
    event: await withRedis(context, (settings) => findQueuedEvent(settings, id)),
  }));
  if (answer === undefined) return;
  looked.push("queue, by event id");
  if (answer.event !== undefined) found.push(toFound(answer.event));
}

function toFound({ eventId, state, envelope }: QueuedEvent): Found {
  const what = { ...byEventId, what: "event in the queue", eventId, state, isTest: envelope?.test === true } as const;
  if (envelope === null) return { ...what, ...nothing };
  const { partner, payload } = envelope;
  return { ...what, partner, referenceKind: referenceKindOf(payload), reference: bookingReferenceOf(payload) };
}

async function findStoredId(context: Context, id: string, { found, looked }: FoundByText): Promise<void> {
  await inBoth(context, async (each) => {
    const { event, deadLetter } = await findEvent(each, id);
    const common = { ...byEventId, eventId: id, isTest: each.isTest === true };
    if (event !== undefined) found.push({ ...common, ...nameOf(event), what: "event", state: event.outcome });
    if (deadLetter === undefined) return;
    const state = deadLetter.resolution ?? deadLetter.errorCode;
    found.push({ ...common, ...nameOf(deadLetter), what: "dead letter", state });
  });
  looked.push("log and dead letters, by event id");
}

type Named = Pick<Found, "partner" | "referenceKind" | "reference">;

function nameOf({ partner, referenceKind, reference }: Named): Named {
  return { partner, referenceKind, reference };
}

async function findRefused(
  context: Context,
  by: "request id" | "reference",
  isWanted: (refusal: RecordedRefusal) => boolean,
  { found, looked, unseen }: FoundByText,
): Promise<void> {
  const since = new Date(context.now().getTime() - refusalsKeptMs);
  const refusals = await orUnseen("refused requests", unseen, () =>
    findRefusals(context, { partner: undefined, since }),
  );
  if (refusals === undefined) return;
  // Others are refused before their payload is read.
  looked.push(
    by === "reference"
      ? "requests of seven days that were refused for their payload, by reference"
      : `refused requests of seven days, by ${by}`,
  );
  const what = { what: "refused request", by, closeness: "exact" } as const;
  const testPartners = readPartnersIfPossible(context)?.filter(({ test }) => test) ?? [];
  for (const { requestId, partner, code: state } of refusals.filter(isWanted)) {
    const isTest = testPartners.some(({ id }) => id === partner);
    found.push({ ...nothing, ...what, eventId: null, requestId, partner, state, isTest });
  }
}

async function findSearched(context: Context, search: GuestSearch, result: FoundByText): Promise<void> {
  const { looked, unseen } = result;
  looked.push(`bookings, log and dead letters of all partners, by ${search.by}`);
  let everywhere: FoundGuest | undefined;
  if (knowsRedis(context.environment))
    everywhere = await orUnseen("queue", unseen, () => findGuestEverywhere(context, search, maxFound + 1));
  else unseen.push("queue: REDIS_URL is not set");
  if (everywhere !== undefined) looked.push(`queue, by ${search.by}`);
  const { exact, near } = everywhere ?? (await findGuest(context, search, maxFound + 1));
  if (search.by === "reference" && knowsRedis(context.environment)) {
    const isOfBooking = ({ partner, subject }: RecordedRefusal) =>
      partner !== null && subject === subjectOf(partner, search.value);
    await findRefused(context, "reference", isOfBooking, result);
  }
  addFindings(result, search, "exact", exact);
  addFindings(result, search, "near", near);
}

function addFindings(
  { found }: FoundByText,
  { by }: GuestSearch,
  closeness: Found["closeness"],
  { bookings, letters, queued }: Findings,
): void {
  for (const booking of bookings) {
    const { state, isTest } = booking;
    found.push({ ...nameOf(booking), what: "booking", by, closeness, eventId: null, state, isTest });
  }
  for (const { eventId, booking, isTest } of letters)
    found.push({ ...nameOf(booking ?? nothing), what: "dead letter", by, closeness, eventId, state: "dead", isTest });
  for (const { jobId: eventId, match, isTest } of queued) {
    const what = { what: "event in the queue", by, closeness, eventId, state: "in the queue", isTest } as const;
    found.push({ ...what, ...nameOf(match.isReadable ? match.booking : nothing) });
  }
}

/** What Redis does not tell must not hide what PostgreSQL does. */
async function orUnseen<Result>(
  place: string,
  unseen: string[],
  look: () => Promise<Result>,
): Promise<Result | undefined> {
  try {
    return await look();
  } catch (error) {
    const why = error instanceof OperationFailure ? error.message : (describeError(error).code ?? "unexpected error");
    unseen.push(`${place}: ${why}`);
    return undefined;
  }
}
