import { setTimeout as sleep } from "node:timers/promises";
import { inTransaction, pauseSubscription, removeSubscription } from "@booking-events/store";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import { readDatabase, withDatabase } from "../../database.ts";
import { defaultName } from "../../terminal/arguments.ts";
import { CommandFailure } from "../../terminal/command-failure.ts";
import { confirm } from "../../terminal/confirm.ts";
import { printLine } from "../../terminal/print.ts";
import { requireSubscription, unknownSubscription } from "./find.ts";

/** A process that has died is active for up to 10 s more. */
const waitLimitMs = 20_000;
const waitStepMs = 200;

export function addRemoveCommand(subscriptions: Command, context: Context): void {
  subscriptions
    .command("remove")
    .summary("remove a subscription")
    .description(
      "Remove a subscription, with its place and its dead letters. What the subscriber keeps of guests stays with it.",
    )
    .argument("<name>", "the subscription's name")
    .option("--yes", "don't ask for confirmation")
    .action(async (name, { yes }) => {
      await readDatabase(context, (client) => requireSubscription(client, name));
      await confirm(context, `Remove the subscription ${name}`, yes);
      await withDatabase(context, async (pool) => {
        // The process that posts must let go of the reader before, or it would create the reader again.
        await pauseSubscription(pool, name, { reason: "is being removed", by: defaultName() });
        for (const giveUpAtMs = Date.now() + waitLimitMs; ; ) {
          const result = await inTransaction(pool, (client) => removeSubscription(client, name));
          if (result === "removed") return;
          if (result === "unknown") throw unknownSubscription(name);
          if (Date.now() > giveUpAtMs)
            throw new CommandFailure(
              `The process webhooks still delivers to ${name}, which is paused now. Look at its log, and try again.`,
            );
          await sleep(waitStepMs);
        }
      });
      printLine(context.stdout, `Removed the subscription ${name}.`);
    });
}
