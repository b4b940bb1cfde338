import { CommandFailure } from "../../terminal/command-failure.ts";

/** Otherwise a mistyped id would look like a success. */
export function noBookings(partner: string): CommandFailure {
  return new CommandFailure(
    `Partner ${partner} has no bookings. See which partners there are: npm run ops -- partners list`,
  );
}
