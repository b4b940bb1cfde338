import { type DeadLetter, findEvent, recordLook } from "@booking-events/operations";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import { parseEventId } from "../../terminal/arguments.ts";
import { CommandFailure } from "../../terminal/command-failure.ts";
import { actAs, byOption } from "../../terminal/operator.ts";
import { printHeading, printJson, printLine } from "../../terminal/print.ts";
import { describeState, printLetter, readQueued } from "./letters.ts";

export function addShowCommand(deadLetters: Command, context: Context): void {
  deadLetters
    .command("show")
    .description(
      "Show one dead letter, and what became of it. The queued event holds personal data of guests, and is shown " +
        "only with --payload.",
    )
    .argument("<eventId>", "a UUID", parseEventId)
    .option("--payload", "show the queued event, with personal data of guests, which is recorded")
    .addOption(byOption())
    .option("--json", "print a JSON object as in the list, and envelope (with --payload)")
    .addHelpText("after", "\nExample:\n  $ ops dead-letters show 0199a6f2-7c1e-7d0a-9d4b-3f1a2b4c5d6e")
    .action(async (eventId, { payload: withPayload = false, by, json }) => {
      const acting = withPayload ? actAs(context, by) : undefined;
      const { deadLetter } = await findEvent(context, eventId);
      if (deadLetter === undefined)
        throw new CommandFailure(
          `Event ${eventId} has no dead letter. See what became of it: ops events show ${eventId}`,
        );
      const print = () => printFound(context, deadLetter, { withPayload, json });
      if (acting === undefined) print();
      else await recordLook(acting, "dead-letters show", { eventId }, print);
    });
}

function printFound(
  { stdout }: Context,
  letter: DeadLetter & { envelope: Buffer },
  { withPayload, json }: { withPayload: boolean; json: true | undefined },
): void {
  const queued = withPayload ? readQueued(letter) : undefined;
  if (json) {
    printJson(stdout, { ...letter, envelope: queued });
    return;
  }
  printHeading(stdout, `Dead letter ${letter.eventId}: ${describeState(letter)}`);
  printLine(stdout);
  printLetter(stdout, letter);
  if (!withPayload) return;
  printLine(stdout);
  printHeading(stdout, "Queued");
  printJson(stdout, queued);
}
