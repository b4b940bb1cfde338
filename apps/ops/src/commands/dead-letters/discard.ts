import { findDeadLetter, findProcessed, type Queryable, resolveDeadLetter } from "@booking-events/store";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import { readDatabase, withDatabase } from "../../database.ts";
import { defaultName, parseNote } from "../../terminal/arguments.ts";
import { CommandFailure } from "../../terminal/command-failure.ts";
import { confirm } from "../../terminal/confirm.ts";
import { printLine } from "../../terminal/print.ts";
import { printable } from "../../terminal/printable.ts";
import { collectEventIds, describeLetters, findLetters } from "./letters.ts";

export function addDiscardCommand(deadLetters: Command, context: Context): void {
  deadLetters
    .command("discard")
    .summary("close dead letters without applying their events")
    .description("Close dead letters without applying their events. The rows stay, with the reason.")
    .argument("<eventId...>", "UUIDs", collectEventIds)
    .requiredOption("--reason <text>", "why; recorded with each dead letter", parseNote)
    .option("--yes", "don't ask for confirmation")
    .option("--by <name>", "who discards them; recorded with each dead letter", parseNote, defaultName())
    .addHelpText(
      "after",
      `
Example:
  $ ops dead-letters discard 0199a6f2-7c1e-7d0a-9d4b-3f1a2b4c5d6e --reason "acme sent it again"`,
    )
    .action(async (eventIds, options) => {
      const letters = await readDatabase(context, (client) => findLetters(client, eventIds));
      const open = letters.filter(({ resolvedAt }) => resolvedAt === null);
      for (const { eventId, resolution } of letters.filter((letter) => !open.includes(letter))) {
        printLine(context.stdout, describeClosed(eventId, resolution));
      }
      if (open.length === 0) return;
      await confirm(context, `Discard ${describeLetters(open)}, so they are never applied`, options.yes);
      const applied = await withDatabase(context, async (pool) => {
        let count = 0;
        for (const { eventId } of open) {
          const result = await discardOne(pool, eventId, options);
          printLine(context.stdout, result.message);
          if (result.isApplied) count += 1;
        }
        return count;
      });
      if (applied > 0)
        throw new CommandFailure(
          `${applied} of ${open.length} could not be discarded, since they had been applied. ` +
            "If a booking is wrong now, send an event that corrects it.",
        );
    });
}

/** Closes one letter: as discarded, or as applied if another delivery of the event has been applied. */
async function discardOne(
  client: Queryable,
  eventId: string,
  { reason, by }: { reason: string; by: string },
): Promise<{ message: string; isApplied: boolean }> {
  const outcome = (await findProcessed(client, [eventId])).get(eventId);
  const resolution = outcome === undefined ? `discarded: ${reason}` : `applied meanwhile: ${outcome}`;
  if (!(await resolveDeadLetter(client, { eventId, resolvedBy: by, resolution }))) {
    const closed = await findDeadLetter(client, eventId);
    return { message: describeClosed(eventId, closed?.resolution ?? "deleted"), isApplied: false };
  }
  if (outcome === undefined) return { message: `Discarded ${eventId}`, isApplied: false };
  return {
    message: `${eventId} has been applied (${outcome}), so it can't be discarded. Its dead letter is closed.`,
    isApplied: true,
  };
}

function describeClosed(eventId: string, resolution: string | null): string {
  return printable(`${eventId} is already closed: ${resolution}`);
}
