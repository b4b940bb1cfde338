import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../context.ts";
import { addDiscardCommand } from "./dead-letters/discard.ts";
import { addListCommand } from "./dead-letters/list.ts";
import { addReplayCommand } from "./dead-letters/replay.ts";
import { addShowCommand } from "./dead-letters/show.ts";

export function addDeadLettersCommands(program: Command, context: Context): void {
  const deadLetters = program
    .command("dead-letters")
    .description(
      "Events that were accepted and could not be applied. Fix the cause, and then replay them: each keeps its id " +
        "and its place in the order. Or discard events that must not be applied.",
    );
  addListCommand(deadLetters, context);
  addShowCommand(deadLetters, context);
  addReplayCommand(deadLetters, context);
  addDiscardCommand(deadLetters, context);
}
