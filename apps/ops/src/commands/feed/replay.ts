import { describeCount, type NamedReader, replayFeed, toSeconds } from "@booking-events/operations";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import { confirm } from "../../terminal/confirm.ts";
import { parsePast } from "../../terminal/duration.ts";
import { actAs, byOption } from "../../terminal/operator.ts";
import { printJson, printLine } from "../../terminal/print.ts";

/** Adds the command for readers of the feed, or the same for subscriptions, each of which is a reader. */
export function addReplayCommand(parent: Command, context: Context, what: NamedReader["what"]): void {
  parent
    .command("replay")
    .description(
      `Give a ${what} all changes since a time again, and those of the five minutes before: for one that has lost what it ` +
        "had taken. One that runs goes back at once. Each change has the same key or webhook-id as before.",
    )
    .argument("<name>", `the ${what}'s name`)
    .requiredOption("--since <time>", "since when, such as 2026-11-20T12:00:00Z, 02:00 (in UTC) or 1h (ago)", (text) =>
      parsePast(text, context.now()),
    )
    .option("--yes", "don't ask for confirmation")
    .addOption(byOption())
    .option("--json", "print one JSON object: changes")
    .action(async (name, { since, yes, by, json }) => {
      const acting = actAs(context, by);
      await confirm(context, `Give ${name} all changes since ${toSeconds(since)} again`, yes);
      const changes = await replayFeed(acting, { what, name }, since);
      if (json) printJson(context.stdout, { changes });
      else printLine(context.stdout, `${name} is given ${describeCount(changes, "change")} again.`);
    });
}
