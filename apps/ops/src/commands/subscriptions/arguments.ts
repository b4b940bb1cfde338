import type { FeedChange } from "@booking-events/operations";
import { type Command, InvalidArgumentError, Option } from "@commander-js/extra-typings";
import { parseCountry } from "../partners/arguments.ts";

const feedChanges = ["created", "updated", "deleted", "recreated", "erased"] as const satisfies FeedChange[];

export function parseName(text: string): string {
  if (!/^[A-Za-z0-9_-]{1,100}$/.test(text)) throw new InvalidArgumentError("Give 1 to 100 letters, digits, - and _.");
  return text;
}

function collectTexts(text: string, previous: string[] = []): string[] {
  return previous.includes(text) ? previous : [...previous, text];
}

function collectCountries(text: string, previous: string[] = []): string[] {
  return collectTexts(parseCountry(text), previous);
}

function collectChanges(text: string, previous: FeedChange[] = []): FeedChange[] {
  const change = feedChanges.find((one) => one === text);
  if (change === undefined) throw new InvalidArgumentError(`Give one of ${feedChanges.join(", ")}.`);
  return previous.includes(change) ? previous : [...previous, change];
}

/** What a subscription gets, and how. */
export type SettingOptions = {
  url?: string | undefined;
  partner?: string[] | undefined;
  change?: FeedChange[] | undefined;
  country?: string[] | undefined;
  arrivalFromDays?: number | undefined;
  arrivalToDays?: number | undefined;
  mode?: "latest" | "every" | undefined;
  payload?: "thin" | "full" | undefined;
};

export function addSettingOptions(command: Command<[string]>): Command<[string], SettingOptions> {
  return command
    .option("--url <url>", "where changes are posted to: https")
    .option("--partner <id>", "only bookings of this partner; may be repeated", collectTexts)
    .option("--change <change>", `only these changes: ${feedChanges.join(", ")}; may be repeated`, collectChanges)
    .option("--country <code>", "only bookings with this destination, such as GB; may be repeated", collectCountries)
    .option("--arrival-from-days <days>", "only arrivals from so many days after the change, in UTC", parseDays)
    .option("--arrival-to-days <days>", "only arrivals up to so many days after it", parseDays)
    .addOption(
      new Option(
        "--mode <mode>",
        "latest: after a failure, only the newest change of a booking is posted; every: each",
      ).choices(["latest", "every"] as const),
    )
    .addOption(
      new Option("--payload <payload>", "thin: ids and names of changed fields; full: the booking, too").choices([
        "thin",
        "full",
      ] as const),
    );
}

/** For the help of commands that are given a URL. */
export const postingVariables = `
Environment:
  WEBHOOKS_ALLOW_PRIVATE  true: http and private addresses are allowed, as for webhooks
  WEBHOOKS_PROXY_URL      as for webhooks: a proxy decides about addresses
`;

const maxDays = 3_660;

function parseDays(text: string): number {
  const days = Number(text);
  if (!/^-?\d+$/.test(text) || Math.abs(days) > maxDays)
    throw new InvalidArgumentError(
      `Give a whole number of days, up to ${maxDays}. Days before the change are negative.`,
    );
  return days;
}

const maxKeepHours = 30 * 24;

export function parseKeepHours(text: string): number {
  const hours = Number(text);
  if (!/^\d+$/.test(text) || hours > maxKeepHours)
    throw new InvalidArgumentError(`Give a whole number of hours, up to ${maxKeepHours}.`);
  return hours;
}
