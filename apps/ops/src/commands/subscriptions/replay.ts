import { describeCount, findSubscription, replaySubscription, toSeconds } from "@booking-events/operations";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import { CommandFailure } from "../../terminal/command-failure.ts";
import { confirm } from "../../terminal/confirm.ts";
import { parsePast } from "../../terminal/duration.ts";
import { actAs, byOption } from "../../terminal/operator.ts";
import { printJson, printLine } from "../../terminal/print.ts";

export function addReplayCommand(subscriptions: Command, context: Context): void {
  subscriptions
    .command("replay")
    .description(
      "Post all changes since a time again, and those of the five minutes before: for a subscriber that has lost " +
        "what it had taken. Each has the same webhook-id as before.",
    )
    .argument("<name>", "the subscription's name")
    .requiredOption("--since <time>", "since when, such as 2026-11-20T12:00:00Z, 02:00 (in UTC) or 1h (ago)", (text) =>
      parsePast(text, context.now()),
    )
    .option("--yes", "don't ask for confirmation")
    .addOption(byOption())
    .option("--json", "print one JSON object: changes")
    .action(async (name, { since, yes, by, json }) => {
      const acting = actAs(context, by);
      const { url } = await findSubscription(context, name);
      if (url === null)
        throw new CommandFailure(`The subscriber of ${name} pulls: it asks for what it wants again, by after.`);
      await confirm(context, `Post all changes since ${toSeconds(since)} to ${name} again`, yes);
      const changes = await replaySubscription(acting, name, since);
      if (json) printJson(context.stdout, { changes });
      else
        printLine(
          context.stdout,
          `${describeCount(changes, "change")} since then ${changes === 1 ? "is" : "are"} posted again.`,
        );
    });
}
