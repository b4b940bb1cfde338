import { rotateSubscription, toSeconds } from "@booking-events/operations";
import { type Command, Option } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import { actAs, byOption } from "../../terminal/operator.ts";
import { printJson, printLine } from "../../terminal/print.ts";
import { parseKeepHours } from "./arguments.ts";
import { nameKeys, printKeys } from "./print-keys.ts";

const defaultKeepHours = 24;

export function addRotateCommand(subscriptions: Command, context: Context): void {
  subscriptions
    .command("rotate")
    .description(
      "Give a subscription a new secret, key or token, and show it once. For a while, each post has a signature by the " +
        "old key, too, or the old token is valid, so the subscriber can switch without an interruption.",
    )
    .argument("<name>", "the subscription's name")
    .addOption(
      new Option("--keep-hours <hours>", "how long the old one stays in use; 0 if it leaked")
        .argParser(parseKeepHours)
        .default(defaultKeepHours),
    )
    .addOption(byOption())
    .option("--json", "print one JSON object: name, secret, publicKey or token, previousUntil")
    .action(async (name, { keepHours, by, json }) => {
      const { shown, previousUntil } = await rotateSubscription(actAs(context, by), name, { keepHours });
      if (json) {
        printJson(context.stdout, { name, ...shown, previousUntil });
        return;
      }
      const what = nameKeys(shown);
      printKeys(context, `The subscription ${name} has this new ${what}:`, shown);
      printLine(context.stdout);
      printLine(
        context.stdout,
        previousUntil === null
          ? `The old ${what} is no longer in use.`
          : `The old ${what} stays in use until ${toSeconds(previousUntil)}.`,
      );
    });
}
