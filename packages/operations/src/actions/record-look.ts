import { type ActingContext, recordAction } from "./record-action.ts";

/**
 * Records that somebody looks at guests' values, and then shows them.
 *
 * @param command as the command line names it, without the option that asks for the values
 * @param ofWhat a reference may name the guest, an id does not
 */
export function recordLook(
  context: ActingContext,
  command: "bookings show" | "events show" | "dead-letters show",
  ofWhat: { partner: string; bookingId: string | undefined } | { eventId: string },
  show: () => void,
): Promise<void> {
  const action = { command: `${command} --payload`, arguments: ofWhat, mustBeRecorded: true };
  return recordAction(context, action, async () => show());
}
