import { type DeadLetter, type DeadLetterGroup, groupDeadLetters, listDeadLetters } from "@booking-events/store";
import type { Context } from "../context.ts";
import { OperationFailure } from "../operation-failure.ts";
import { readDatabase } from "../services/database.ts";
import { requireKnown } from "../services/partners-file.ts";

type LetterFilter = Parameters<typeof listDeadLetters>[1];

/** More of them in one action say nothing new, and need memory. */
export const maxLetters = 50_000;

/** Finds dead letters, the oldest first. */
export async function findLetters(context: Context, filter: LetterFilter): Promise<DeadLetter[]> {
  const letters = await readDatabase(context, (client) => listDeadLetters(client, filter));
  requireKnown(context, filter.partner, letters);
  return letters;
}

/** Groups the open dead letters by their code, the most frequent codes first. */
export function groupLetters(
  context: Context,
  filter: Parameters<typeof groupDeadLetters>[1],
): Promise<DeadLetterGroup[]> {
  return readDatabase(context, (client) => groupDeadLetters(client, filter));
}

/** @throws OperationFailure if one of the events has no dead letter */
export async function findLettersOf(context: Context, eventIds: string[]): Promise<DeadLetter[]> {
  const letters = await findLetters(context, { eventIds, includeResolved: true });
  const missing = eventIds.find((wanted) => letters.every(({ eventId }) => eventId !== wanted));
  if (missing !== undefined)
    throw new OperationFailure(
      `Event ${missing} has no dead letter. See what became of it: ops events show ${missing}`,
    );
  return letters;
}

/** The letter was replayed, and there is no result yet. Redis may have refused or lost the event. */
export function isInQueue({ resolvedAt, replayedAt, failedAt }: DeadLetter): boolean {
  return resolvedAt === null && replayedAt !== null && replayedAt > failedAt;
}

const maxEventIds = 100;

/** For what is recorded of an action: how many events, and the ids of the first. */
export function describeEvents(letters: DeadLetter[]): { events: number; eventIds: string[] } {
  return { events: letters.length, eventIds: letters.slice(0, maxEventIds).map(({ eventId }) => eventId) };
}
