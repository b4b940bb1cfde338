import type { Command } from "commander";
import type { Context } from "../context.ts";
import { addListCommand } from "./events/list.ts";
import { addShowCommand } from "./events/show.ts";

export function addEventsCommands(program: Command, context: Context): void {
  const events = program
    .command("events")
    .summary("what arrived, when, and what became of it")
    .description("What arrived, when, and what became of it.");
  addListCommand(events, context);
  addShowCommand(events, context);
}
