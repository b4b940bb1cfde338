import type { ActingContext } from "@booking-events/operations";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../context.ts";
import { confirm } from "./confirm.ts";
import { actAs, byOption } from "./operator.ts";
import { printLine } from "./print.ts";

interface ConfirmedCommand {
  name: string;
  description: string;
  /** Without its question mark. */
  question: (reader: string) => string;
  /** Fails if there is none of this name. */
  require?: (context: Context, reader: string) => Promise<unknown>;
  act: (acting: ActingContext, reader: string) => Promise<void>;
  done: (reader: string) => string;
}

/** Adds a command that changes a reader, or a subscription, once that is confirmed. */
export function addConfirmedCommand(parent: Command, context: Context, command: ConfirmedCommand): void {
  parent
    .command(command.name)
    .description(command.description)
    .argument("<name>", "its name")
    .option("--yes", "don't ask for confirmation")
    .addOption(byOption())
    .action(async (name, { yes, by }) => {
      const acting = actAs(context, by);
      await command.require?.(context, name);
      await confirm(context, command.question(name), yes);
      await command.act(acting, name);
      printLine(context.stdout, command.done(name));
    });
}
