import { findLetters, findLettersOf, maxLetters, type Replay, replayDeadLetters } from "@booking-events/operations";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import { partnerOption } from "../../terminal/arguments.ts";
import { CommandFailure } from "../../terminal/command-failure.ts";
import { confirm } from "../../terminal/confirm.ts";
import type { Column } from "../../terminal/format-table.ts";
import { actAs, byOption } from "../../terminal/operator.ts";
import { printRows } from "../../terminal/print.ts";
import { collectEventIds, describeLetters } from "./letters.ts";

export function addReplayCommand(deadLetters: Command, context: Context): void {
  deadLetters
    .command("replay")
    .description(
      "Put dead letters back into the queue, and print what became of them. Each event keeps its id and its place in " +
        "the order. A second replay is safe, since an event is never applied twice.",
    )
    .argument("[eventId...]", "UUIDs", collectEventIds)
    .option("--all", "the open dead letters, up to 50,000 at once, or those that --partner and --code select")
    .addOption(partnerOption("with --all: only dead letters"))
    .option("--code <code>", "with --all: only dead letters with this error code")
    .option("--yes", "don't ask for confirmation")
    .addOption(byOption())
    .option("--no-wait", "don't wait for the results")
    .option("--json", "print a JSON array: eventId, result (applied, dead, waiting, invalid or resolved), detail")
    .addHelpText(
      "after",
      `
Examples:
  $ ops dead-letters replay 0199a6f2-7c1e-7d0a-9d4b-3f1a2b4c5d6e
  $ ops dead-letters replay --all --code TypeError --yes     # after the release with the fix`,
    )
    .action(async (eventIds, { all, partner, code, yes, by, wait, json }) => {
      if (all === undefined && (partner !== undefined || code !== undefined))
        throw new CommandFailure("--partner and --code need --all.", { exitCode: 2 });
      if ((all === true) === eventIds.length > 0)
        throw new CommandFailure("Give either ids of events or --all.", { exitCode: 2 });
      const letters = await (all
        ? findLetters(context, { partner, errorCode: code, limit: maxLetters })
        : findLettersOf(context, eventIds));
      if (letters.length === maxLetters)
        context.notify(`Only the oldest ${maxLetters} are taken. Once they are applied, run it again for the others.`);
      const acting = actAs(context, by);
      const open = letters.filter(({ resolvedAt }) => resolvedAt === null);
      if (open.length > 0) await confirm(context, `Replay ${describeLetters(open)}`, yes);
      const replays = letters.length === 0 ? [] : await replayDeadLetters(acting, letters, { isAwaited: wait });
      printRows(context.stdout, columns, replays, { json, none: "There are no dead letters to replay." });
      failUnlessApplied(replays, wait);
    });
}

function failUnlessApplied(replays: Replay[], isAwaited: boolean): void {
  const count = (...results: Replay["result"][]) => replays.filter(({ result }) => results.includes(result)).length;
  const failed = count("dead", "invalid");
  if (failed > 0)
    throw new CommandFailure(`${failed} of ${replays.length} could not be applied, and are still dead letters.`);
  const waiting = count("waiting");
  if (isAwaited && waiting > 0) {
    throw new CommandFailure(
      `${waiting} of ${replays.length} are still in the queue. Check that the worker runs, and look again: ` +
        "ops dead-letters list --resolved",
    );
  }
}

const columns: Column<Replay>[] = [
  { header: "EVENT ID", value: ({ eventId }) => eventId },
  { header: "RESULT", value: ({ result }) => result },
  { header: "DETAIL", value: ({ detail }) => detail },
];
