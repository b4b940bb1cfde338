import { type GuestSearch, toGuestSearch } from "@booking-events/operations";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import { notDecoded, partnerOption } from "../../terminal/arguments.ts";
import { CommandFailure } from "../../terminal/command-failure.ts";
import { readLine } from "../../terminal/confirm.ts";

export interface SearchOptions {
  email?: string;
  phone?: string;
  reference?: string;
  partner?: string;
}

export function addSearchOptions(command: Command): Command {
  return command
    .option("--email <address>", "an e-mail address of the guest; - reads it from stdin")
    .option("--phone <number>", "a phone number of the guest, best with + and the country code; - reads it from stdin")
    .option("--reference <text>", "the reference of a trip or of a consumer; - reads it from stdin")
    .addOption(partnerOption("only bookings"));
}

/** @throws CommandFailure unless the options name exactly one value */
export async function readSearch(context: Context, options: SearchOptions): Promise<GuestSearch> {
  const given = (["email", "phone", "reference"] as const).filter((by) => options[by] !== undefined);
  const [by] = given;
  if (by === undefined || given.length > 1)
    throw new CommandFailure("Give one of --email, --phone and --reference.", { exitCode: 2 });
  const option = options[by] as string;
  const text = option === "-" ? ((await readLine(context, "")) ?? "") : option;
  if (text.includes("\ufffd"))
    throw new CommandFailure(`The value of --${by} can't be read. ${notDecoded}`, { exitCode: 2 });
  if (text.trim() === "") throw new CommandFailure(`The value of --${by} is empty.`, { exitCode: 2 });
  const search = toGuestSearch(by, text, options.partner);
  if (search === undefined)
    throw new CommandFailure(`The value of --${by} has nothing to search for. ${adviceOn[by]}`, { exitCode: 2 });
  return search;
}

const adviceOn = {
  email: "Give an e-mail address.",
  phone: "Give a phone number with + and the country code, such as +442071838750.",
  reference: "Give the reference of a trip or of a consumer.",
};
