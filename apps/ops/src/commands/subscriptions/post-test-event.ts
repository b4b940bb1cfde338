import { type PostOutcome, postTestEvent } from "@booking-events/operations";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import { CommandFailure } from "../../terminal/command-failure.ts";
import { actAs, byOption } from "../../terminal/operator.ts";
import { printJson, printLine } from "../../terminal/print.ts";

export function addTestCommand(subscriptions: Command, context: Context): void {
  subscriptions
    .command("test")
    .description(
      "Post a test event to a subscription, from here: one of the type booking.test, which is about no booking, signed as " +
        "all posts are. Prints the answer. This host may reach other addresses than the process webhooks.",
    )
    .argument("<name>", "the subscription's name")
    .addOption(byOption())
    .option("--json", "print one JSON object: status, failure, durationMs")
    .action(async (name, { by, json }) => {
      const { outcome, durationMs } = await postTestEvent(actAs(context, by), name);
      const { kind, status } = outcome;
      if (json) printJson(context.stdout, { status, failure: kind === "failed" ? outcome.failure : null, durationMs });
      else if (status !== null) printLine(context.stdout, `${name} answered ${status} after ${durationMs} ms.`);
      if (kind !== "done") throw new CommandFailure(describeFailure(name, outcome));
    });
}

function describeFailure(name: string, outcome: PostOutcome): string {
  if (outcome.kind === "gone") return `${name} wants no posts (410). A change that is posted would pause it.`;
  if (outcome.kind === "wait")
    return `${name} wants no posts for ${Math.ceil(outcome.pauseMs / 1_000)} s (Retry-After). They would wait.`;
  if (outcome.kind === "failed" && outcome.status === null)
    return `${name} could not be reached (${outcome.failure}). Check its URL, certificate and firewall.`;
  return `${name} did not take it: any 2xx would be success.`;
}
