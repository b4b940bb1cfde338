import { pauseSubscription, resumeSubscription } from "@booking-events/operations";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import { parseNote } from "../../terminal/arguments.ts";
import { actAs, byOption } from "../../terminal/operator.ts";
import { printLine } from "../../terminal/print.ts";

export function addPauseCommands(subscriptions: Command, context: Context): void {
  subscriptions
    .command("pause")
    .description(
      "Deliver nothing to a subscription until it is resumed. It keeps its place. A subscriber that pulls is refused " +
        "meanwhile.",
    )
    .argument("<name>", "the subscription's name")
    .option("--reason <text>", "why; recorded", parseNote)
    .addOption(byOption())
    .action(async (name, { reason = null, by }) => {
      const isDone = await pauseSubscription(actAs(context, by), name, { reason });
      const was = isDone ? "is now" : "was already";
      printLine(context.stdout, `The subscription ${name} ${was} paused.`);
    });
  subscriptions
    .command("resume")
    .description("Deliver to a paused subscription again, from where it was.")
    .argument("<name>", "the subscription's name")
    .addOption(byOption())
    .action(async (name, { by }) => {
      const isDone = await resumeSubscription(actAs(context, by), name);
      printLine(
        context.stdout,
        isDone ? `The subscription ${name} is delivered to again.` : `The subscription ${name} was not paused.`,
      );
    });
}
