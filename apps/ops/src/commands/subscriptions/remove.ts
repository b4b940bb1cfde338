import { findSubscription, removeSubscription } from "@booking-events/operations";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import { confirm } from "../../terminal/confirm.ts";
import { actAs, byOption } from "../../terminal/operator.ts";
import { printLine } from "../../terminal/print.ts";

export function addRemoveCommand(subscriptions: Command, context: Context): void {
  subscriptions
    .command("remove")
    .summary("remove a subscription")
    .description(
      "Remove a subscription, with its place and its dead letters. What the subscriber keeps of guests stays with it.",
    )
    .argument("<name>", "the subscription's name")
    .option("--yes", "don't ask for confirmation")
    .addOption(byOption())
    .action(async (name, { yes, by }) => {
      const acting = actAs(context, by);
      await findSubscription(context, name);
      await confirm(context, `Remove the subscription ${name}`, yes);
      await removeSubscription(acting, name);
      printLine(context.stdout, `Removed the subscription ${name}.`);
    });
}
