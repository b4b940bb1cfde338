import type { Outcome } from "@booking-events/bookings";
import {
  type DeadLetter,
  type EventDetails,
  type EventFilter,
  type EventSearch,
  findDeadLetter,
  findEvent as findLogged,
  listEvents,
  searchEvents,
} from "@booking-events/store";
import type { Context } from "../context.ts";
import { OperationFailure } from "../operation-failure.ts";
import { hasTakenTooLong, readDatabase } from "../services/database.ts";
import { requireKnown } from "../services/partners-file.ts";

export const outcomes = [
  ...["created", "updated", "deleted", "recreated", "unchanged", "duplicate", "superseded", "expired", "erased"],
] as const satisfies Outcome[];

/** Finds events in the log, the newest first. */
export async function findEvents(context: Context, filter: EventFilter): Promise<EventDetails[]> {
  try {
    const events = await readDatabase(context, (client) => listEvents(client, filter));
    requireKnown(context, filter.partner, events);
    return events;
  } catch (error) {
    if (!hasTakenTooLong(error) || filter.since !== undefined) throw error;
    throw new OperationFailure(
      "There are too few such events among too many others, and the search took too long. Add --since, such as " +
        "--since 1d.",
      { cause: error },
    );
  }
}

/** Finds the newest events in the log that match, among a limited number that it looks at. */
export function searchLog(context: Context, filter: Omit<EventFilter, "reference">): Promise<EventSearch> {
  return readDatabase(context, (client) => searchEvents(client, filter));
}

/** Payload and envelope hold personal data. Both undefined: the event has not been processed. */
export function findEvent(
  context: Context,
  id: string,
): Promise<{
  event: (EventDetails & { payload: unknown }) | undefined;
  deadLetter: (DeadLetter & { envelope: Buffer }) | undefined;
}> {
  return readDatabase(context, async (client) => ({
    event: await findLogged(client, id),
    deadLetter: await findDeadLetter(client, id),
  }));
}
