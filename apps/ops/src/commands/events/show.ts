import { type DeadLetter, type EventDetails, findEvent, recordLook } from "@booking-events/operations";
import type { Command } from "@commander-js/extra-typings";
import type { Context, Output } from "../../context.ts";
import { parseEventId } from "../../terminal/arguments.ts";
import { CommandFailure } from "../../terminal/command-failure.ts";
import { actAs, byOption } from "../../terminal/operator.ts";
import { printFields, printHeading, printJson, printLine } from "../../terminal/print.ts";
import { describeReference } from "../../terminal/reference.ts";
import { describeState, printLetter, readQueued } from "../dead-letters/letters.ts";

export function addShowCommand(events: Command, context: Context): void {
  events
    .command("show")
    .description(
      "Show one event, by the id that the partner got in the answer, and its dead letter, if it has one. What was sent " +
        "holds personal data of guests, and is shown only with --payload.",
    )
    .argument("<eventId>", "a UUID", parseEventId)
    .option("--payload", "show what was sent, with personal data of guests, which is recorded")
    .addOption(byOption())
    .option(
      "--json",
      "print a JSON object as in the list, and payload (with --payload), and deadLetter (if it has one): as in the list " +
        "of dead letters, and envelope (with --payload)",
    )
    .addHelpText("after", "\nExample:\n  $ ops events show 0199a6f2-7c1e-7d0a-9d4b-3f1a2b4c5d6e --payload")
    .action(async (id, { payload: withPayload = false, by, json }) => {
      const acting = withPayload ? actAs(context, by) : undefined;
      const { event, deadLetter } = await findEvent(context, id);
      if (event === undefined && deadLetter === undefined)
        throw new CommandFailure(
          `No event ${id} has been processed. If it was accepted, it is in the queue: ops find ${id}`,
        );
      const print = () =>
        json
          ? printJson(context.stdout, toJson(event, deadLetter, withPayload))
          : printEvent(context, { id, event, deadLetter }, withPayload);
      if (acting === undefined) print();
      else await recordLook(acting, "events show", { eventId: id }, print);
    });
}

type Applied = EventDetails & { payload: unknown };
type Letter = DeadLetter & { envelope: Buffer };

function toJson(event: Applied | undefined, letter: Letter | undefined, withPayload: boolean): object {
  return {
    ...(event ?? (letter && { ...nameOf(letter), outcome: null })),
    // JSON leaves out what is undefined.
    ...(event && { payload: withPayload ? event.payload : undefined }),
    deadLetter: letter && {
      ...letter,
      envelope: withPayload ? readQueued(letter) : undefined,
    },
  };
}

function nameOf({ eventId: id, partner, kind, referenceKind, reference, sequence }: DeadLetter): object {
  return { id, partner, kind, referenceKind, reference, sequence };
}

function printEvent(
  { stdout }: Context,
  { id, event, deadLetter }: { id: string; event: Applied | undefined; deadLetter: Letter | undefined },
  withPayload: boolean,
): void {
  printHeading(stdout, `Event ${id}: ${event?.outcome ?? "could not be applied"}`);
  printLine(stdout);
  if (event !== undefined) printApplied(stdout, event);
  if (event !== undefined && withPayload) printContent(stdout, "Payload", event.payload);
  if (deadLetter === undefined) return;
  if (event !== undefined) {
    printLine(stdout);
    printHeading(stdout, `Dead letter: ${describeState(deadLetter)}`);
  }
  printLetter(stdout, deadLetter);
  if (withPayload) printContent(stdout, "Queued", readQueued(deadLetter));
}

function printApplied(output: Output, event: Applied): void {
  printFields(output, [
    ["Partner", event.partner],
    ["Kind", event.kind],
    ["Reference", describeReference(event)],
    // To the millisecond: --at takes what is copied from here.
    ["Received", event.receivedAt.toISOString()],
    ["Processed", event.processedAt.toISOString()],
    ["Sequence", event.sequence],
    ["Idempotency key", event.idempotencyKey],
    ["Secret", event.secretId],
    ["Duplicate of", event.duplicateOf],
    ["Warnings", event.warnings.join(", ")],
  ]);
}

function printContent(output: Output, name: string, content: unknown): void {
  printLine(output);
  printHeading(output, name);
  if (content === null) printLine(output, "The content was removed, since it was too old.");
  else printJson(output, content);
}
