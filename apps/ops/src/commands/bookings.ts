import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../context.ts";
import { addRenormaliseCommand } from "./bookings/renormalise.ts";
import { addRepairCommand } from "./bookings/repair.ts";
import { addRestoreCommand } from "./bookings/restore.ts";
import { addShowCommand } from "./bookings/show.ts";
import { addStuckCommand } from "./bookings/stuck.ts";
import { addVerifyCommand } from "./bookings/verify.ts";

export function addBookingsCommands(program: Command, context: Context): void {
  const bookings = program
    .command("bookings")
    .description(
      "Show bookings and their events, put them back to what they were, verify and repair them, and read their contents again.",
    );
  addShowCommand(bookings, context);
  addStuckCommand(bookings, context);
  addRestoreCommand(bookings, context);
  addVerifyCommand(bookings, context);
  addRepairCommand(bookings, context);
  addRenormaliseCommand(bookings, context);
}
