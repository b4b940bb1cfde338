import type { Command } from "commander";
import type { Context } from "../context.ts";
import { addShowCommand } from "./bookings/show.ts";
import { addVerifyCommand } from "./bookings/verify.ts";

export function addBookingsCommands(program: Command, context: Context): void {
  const bookings = program
    .command("bookings")
    .summary("a booking's state now, and how it came to it")
    .description("A booking's state now, and how it came to it.");
  addShowCommand(bookings, context);
  addVerifyCommand(bookings, context);
}
