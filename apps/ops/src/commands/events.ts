import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../context.ts";
import { addListCommand } from "./events/list.ts";
import { addShowCommand } from "./events/show.ts";

export function addEventsCommands(program: Command, context: Context): void {
  const events = program.command("events").description("Show events and their outcomes.");
  addListCommand(events, context);
  addShowCommand(events, context);
}
