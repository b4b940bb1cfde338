import { parseEnvironment, variables } from "@booking-events/runtime";
import {
  type createPool,
  type DigestKey,
  DigestKeyError,
  findGuestBookings,
  findGuestLetters,
  type GuestBooking,
  type GuestLetter,
  type GuestSearch,
  normalizeContact,
  openDigestKey,
} from "@booking-events/store";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import { notDecoded } from "../../terminal/arguments.ts";
import { CommandFailure } from "../../terminal/command-failure.ts";
import { readLine } from "../../terminal/confirm.ts";

type Pool = ReturnType<typeof createPool>;

export interface SearchOptions {
  email?: string;
  phone?: string;
  reference?: string;
  partner?: string;
}

export function addSearchOptions(command: Command): Command {
  return command
    .option("--email <address>", "an e-mail address of the guest; - reads it from stdin")
    .option("--phone <number>", "a phone number of the guest, as international as it was sent; - reads it from stdin")
    .option("--reference <text>", "the reference of a trip or of a consumer; - reads it from stdin")
    .option("--partner <id>", "only this partner's bookings");
}

/** @throws CommandFailure unless the options name exactly one value */
export async function readSearch(context: Context, options: SearchOptions): Promise<GuestSearch> {
  const given = (["email", "phone", "reference"] as const).filter((by) => options[by] !== undefined);
  const [by] = given;
  if (by === undefined || given.length > 1)
    throw new CommandFailure("Give one of --email, --phone and --reference.", { exitCode: 2 });
  const option = options[by] as string;
  const text = option === "-" ? ((await readLine(context, "")) ?? "") : option;
  const value = by === "reference" ? text || undefined : normalizeContact(by, text);
  if (value?.includes("\ufffd"))
    throw new CommandFailure(`The value of --${by} can't be read. ${notDecoded}`, { exitCode: 2 });
  if (value === undefined) throw new CommandFailure(`The value of --${by} is empty.`, { exitCode: 2 });
  return { by, value, partner: options.partner };
}

/** @throws CommandFailure if it is not the key that the database's digests were made with */
export async function openKey({ environment }: Context, pool: Pool): Promise<DigestKey> {
  const { DIGEST_KEY } = parseEnvironment({ DIGEST_KEY: variables.DIGEST_KEY }, environment);
  try {
    return await openDigestKey(pool, DIGEST_KEY);
  } catch (error) {
    throw error instanceof DigestKeyError ? new CommandFailure(error.message, { cause: error }) : error;
  }
}

export interface StoredFindings {
  bookings: GuestBooking[];
  letters: GuestLetter[];
}

export async function findStored(pool: Pool, key: DigestKey, search: GuestSearch): Promise<StoredFindings> {
  const bookings = await findGuestBookings(pool, key, search);
  return { bookings, letters: await findGuestLetters(pool, search) };
}
