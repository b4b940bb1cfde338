import {
  describeAge,
  describeReaderState,
  type FeedReader,
  listReaders,
  removeReader,
  resetReader,
} from "@booking-events/operations";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../context.ts";
import { confirm } from "../terminal/confirm.ts";
import type { Column } from "../terminal/format-table.ts";
import { actAs, byOption } from "../terminal/operator.ts";
import { printLine, printRows } from "../terminal/print.ts";
import { addDeadLettersCommand } from "./feed/dead-letters.ts";

export function addFeedCommands(program: Command, context: Context): void {
  const feed = program
    .command("feed")
    .summary("list, reset and remove programs that read the feed")
    .description("List, reset and remove readers: the programs that read the feed of changes, and subscriptions.");
  feed
    .command("list")
    .summary("list the readers and how far each is behind")
    .description("List the readers and how far each is behind, the furthest first.")
    .option(
      "--json",
      "print a JSON array: name, owner, lastId, lagChanges, lagMs, hasMissedChanges, seenAt, parked, dead, " +
        "failingSince, breakerOpenedAt, pausedAt",
    )
    .action(async ({ json }) => {
      const readers = await listReaders(context);
      printRows(context.stdout, columnsAt(context.now()), readers, { json, none: "No program reads the feed." });
    });
  addDeadLettersCommand(feed, context, "reader");
  feed
    .command("reset")
    .summary("make a reader start over")
    .description(
      "Make a reader start over: from a snapshot, or as its program begins otherwise. A program that runs does so at " +
        "once. One that has stopped with FeedGapError does so when it is started.",
    )
    .argument("<name>", "the reader's name")
    .option("--yes", "don't ask for confirmation")
    .addOption(byOption())
    .action(async (name, { yes, by }) => {
      const acting = actAs(context, by);
      await confirm(context, `Make the reader ${name} start over`, yes);
      await resetReader(acting, name);
      printLine(context.stdout, `The reader ${name} starts over.`);
    });
  feed
    .command("remove")
    .summary("remove a reader whose program is gone")
    .description(
      "Remove a reader whose program is gone, so that nobody is alerted. What the program keeps of guests stays with " +
        "it: delete that, too.",
    )
    .argument("<name>", "the reader's name")
    .option("--yes", "don't ask for confirmation")
    .addOption(byOption())
    .action(async (name, { yes, by }) => {
      const acting = actAs(context, by);
      await confirm(context, `Remove the reader ${name}`, yes);
      await removeReader(acting, name);
      printLine(context.stdout, `Removed the reader ${name}.`);
    });
}

const columnsAt = (now: Date): Column<FeedReader>[] => [
  { header: "READER", value: ({ name }) => name },
  { header: "CHANGES BEHIND", value: ({ lagChanges }) => String(lagChanges) },
  { header: "FOR", value: ({ lagMs }) => (lagMs === 0 ? "" : describeAge(lagMs)) },
  { header: "PARKED", value: ({ parked }) => String(parked) },
  { header: "DEAD", value: ({ dead }) => String(dead) },
  { header: "STATE", value: describeReaderState },
  { header: "LAST SEEN", value: ({ seenAt }) => `${describeAge(now.getTime() - seenAt.getTime())} ago` },
  { header: "OWNER", value: ({ owner }) => owner },
];
