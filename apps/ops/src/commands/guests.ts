import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../context.ts";
import { addEraseCommand } from "./guests/erase.ts";
import { addFindCommand } from "./guests/find.ts";

export function addGuestsCommands(program: Command, context: Context): void {
  const guests = program
    .command("guests")
    .description("Find the bookings of a guest, over all partners, and erase them. See docs/privacy.md.");
  addFindCommand(guests, context);
  addEraseCommand(guests, context);
}
