import { findSubscription, removeSubscription } from "@booking-events/operations";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../context.ts";
import { addConfirmedCommand } from "../terminal/confirmed-command.ts";
import { addDeadLettersCommand } from "./feed/dead-letters.ts";
import { addReplayCommand } from "./feed/replay.ts";
import { addAddCommand } from "./subscriptions/add.ts";
import { addListCommand } from "./subscriptions/list.ts";
import { addPauseCommands } from "./subscriptions/pause.ts";
import { addTestCommand } from "./subscriptions/post-test-event.ts";
import { addRotateCommand } from "./subscriptions/rotate.ts";
import { addSetCommand } from "./subscriptions/set.ts";
import { addShowCommand } from "./subscriptions/show.ts";

export function addSubscriptionsCommands(program: Command, context: Context): void {
  const subscriptions = program
    .command("subscriptions")
    .description(
      "Who gets changes of bookings by signed webhooks, or pulls them over HTTP. A secret or a token is shown once. " +
        "Webhooks, the process that delivers, follows each change of these within a moment.",
    );
  addAddCommand(subscriptions, context);
  addListCommand(subscriptions, context);
  addShowCommand(subscriptions, context);
  addSetCommand(subscriptions, context);
  addTestCommand(subscriptions, context);
  addPauseCommands(subscriptions, context);
  addRotateCommand(subscriptions, context);
  addReplayCommand(subscriptions, context, "subscription");
  addDeadLettersCommand(subscriptions, context, "subscription");
  addConfirmedCommand(subscriptions, context, {
    name: "remove",
    description:
      "Remove a subscription, with its place and its dead letters. What the subscriber keeps of guests stays with it.",
    question: (subscription) => `Remove the subscription ${subscription}`,
    require: findSubscription,
    act: removeSubscription,
    done: (subscription) => `Removed the subscription ${subscription}.`,
  });
}
