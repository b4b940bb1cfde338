import { type DeadLetter, type EventDetails, findEvent } from "@booking-events/operations";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import { parseEventId } from "../../terminal/arguments.ts";
import { CommandFailure } from "../../terminal/command-failure.ts";
import { printFields, printHeading, printJson, printLine } from "../../terminal/print.ts";
import { describeReference } from "../../terminal/reference.ts";
import { printLetter } from "../dead-letters/letters.ts";

export function addShowCommand(events: Command, context: Context): void {
  events
    .command("show")
    .description(
      "Show one event, by the id that the partner got in the answer. The payload holds personal data of guests, " +
        "and is shown only with --payload.",
    )
    .argument("<eventId>", "a UUID", parseEventId)
    .option("--payload", "show the payload, with personal data of guests")
    .option(
      "--json",
      "print a JSON object as in the list, payload (with --payload), deadLetter (if the event could not be applied)",
    )
    .addHelpText("after", "\nExample:\n  $ ops events show 0199a6f2-7c1e-7d0a-9d4b-3f1a2b4c5d6e --payload")
    .action(async (id, options) => {
      const { event, deadLetter } = await findEvent(context, id);
      if (event !== undefined) showApplied(context, event, options);
      else if (deadLetter !== undefined) showFailed(context, deadLetter, options);
      else
        throw new CommandFailure(
          `No event ${id} has been processed. If it was accepted, it is in the queue: ops find ${id}`,
        );
    });
}

interface ShowOptions {
  payload?: true;
  json?: true;
}

function showApplied(
  { stdout }: Context,
  { payload, ...event }: EventDetails & { payload: unknown },
  options: ShowOptions,
): void {
  if (options.json) {
    printJson(stdout, options.payload ? { ...event, payload } : event);
    return;
  }
  printHeading(stdout, `Event ${event.id}: ${event.outcome}`);
  printLine(stdout);
  printFields(stdout, [
    ["Partner", event.partner],
    ["Kind", event.kind],
    ["Reference", describeReference(event)],
    ["Received", event.receivedAt],
    ["Processed", event.processedAt],
    ["Sequence", event.sequence],
    ["Idempotency key", event.idempotencyKey],
    ["Secret", event.secretId],
    ["Duplicate of", event.duplicateOf],
    ["Warnings", event.warnings.join(", ")],
  ]);
  if (!options.payload) return;
  printLine(stdout);
  printHeading(stdout, "Payload");
  if (payload === null) printLine(stdout, "The content was removed, since it was too old.");
  else printJson(stdout, payload);
}

function showFailed(
  { stdout, stderr }: Context,
  letter: DeadLetter & { envelope: Buffer },
  options: ShowOptions,
): void {
  const { eventId, partner, kind, referenceKind, reference, sequence, envelope: _guestsData, ...failure } = letter;
  if (options.payload) {
    printLine(stderr, `Show what was queued with: ops dead-letters show ${eventId} --payload`);
  }
  if (options.json) {
    const event = { id: eventId, partner, kind, referenceKind, reference, sequence, outcome: null };
    printJson(stdout, { ...event, deadLetter: failure });
    return;
  }
  printHeading(stdout, `Event ${eventId}: could not be applied`);
  printLine(stdout);
  printLetter(stdout, letter);
}
