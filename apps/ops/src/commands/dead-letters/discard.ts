import { type Discard, discardDeadLetters, findLettersOf } from "@booking-events/operations";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import { parseNote } from "../../terminal/arguments.ts";
import { CommandFailure } from "../../terminal/command-failure.ts";
import { confirm } from "../../terminal/confirm.ts";
import { actAs, byOption } from "../../terminal/operator.ts";
import { printLine } from "../../terminal/print.ts";
import { printable } from "../../terminal/printable.ts";
import { collectEventIds, describeLetters } from "./letters.ts";

export function addDiscardCommand(deadLetters: Command, context: Context): void {
  deadLetters
    .command("discard")
    .description("Close dead letters without applying their events. The rows stay, with the reason.")
    .argument("<eventId...>", "UUIDs", collectEventIds)
    .requiredOption("--reason <text>", "why; recorded with each dead letter", parseNote)
    .option("--yes", "don't ask for confirmation")
    .addOption(byOption())
    .addHelpText(
      "after",
      `
Example:
  $ ops dead-letters discard 0199a6f2-7c1e-7d0a-9d4b-3f1a2b4c5d6e --reason "acme sent it again"`,
    )
    .action(async (eventIds, options) => {
      const letters = await findLettersOf(context, eventIds);
      const open = letters.filter(({ resolvedAt }) => resolvedAt === null);
      for (const { eventId, resolution } of letters.filter((letter) => !open.includes(letter))) {
        printLine(context.stdout, describeClosed(eventId, resolution));
      }
      if (open.length === 0) return;
      const acting = actAs(context, options.by);
      await confirm(context, `Discard ${describeLetters(open)}, so they are never applied`, options.yes);
      const discards = await discardDeadLetters(acting, open, options);
      for (const discard of discards) printLine(context.stdout, describeDiscard(discard));
      const applied = discards.filter(({ result }) => result === "applied").length;
      if (applied > 0)
        throw new CommandFailure(
          `${applied} of ${open.length} could not be discarded, since they had been applied. ` +
            "If a booking is wrong now, send an event that corrects it.",
        );
    });
}

function describeDiscard({ eventId, result, detail }: Discard): string {
  if (result === "discarded") return `Discarded ${eventId}`;
  if (result === "resolved") return describeClosed(eventId, detail);
  return `${eventId} has been applied (${detail}), so it can't be discarded. Its dead letter is closed.`;
}

function describeClosed(eventId: string, resolution: string | null): string {
  return printable(`${eventId} is already closed: ${resolution}`);
}
