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
import { addConfirmedCommand } from "../terminal/confirmed-command.ts";
import type { Column } from "../terminal/format-table.ts";
import { printRows } from "../terminal/print.ts";
import { addDeadLettersCommand } from "./feed/dead-letters.ts";
import { addReplayCommand } from "./feed/replay.ts";

export function addFeedCommands(program: Command, context: Context): void {
  const feed = program
    .command("feed")
    .description(
      "List, replay, reset and remove readers: the programs that read the feed of changes, and subscriptions.",
    );
  feed
    .command("list")
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
  addReplayCommand(feed, context, "reader");
  addConfirmedCommand(feed, context, {
    name: "reset",
    description:
      "Make a reader start over: from a snapshot, or as its program begins otherwise. A program that runs does so at " +
      "once. One that has stopped with FeedGapError does so when it is started.",
    question: (reader) => `Make the reader ${reader} start over`,
    act: resetReader,
    done: (reader) => `The reader ${reader} starts over.`,
  });
  addConfirmedCommand(feed, context, {
    name: "remove",
    description:
      "Remove a reader whose program is gone, so that nobody is alerted. What the program keeps of guests stays with " +
      "it: delete that, too.",
    question: (reader) => `Remove the reader ${reader}`,
    act: removeReader,
    done: (reader) => `Removed the reader ${reader}.`,
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
