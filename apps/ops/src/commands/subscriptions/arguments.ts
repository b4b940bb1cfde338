import type { FeedChange } from "@booking-events/operations";
import { InvalidArgumentError, Option } from "@commander-js/extra-typings";
import { parseCountry } from "../partners/arguments.ts";

export const feedChanges = ["created", "updated", "deleted", "recreated", "erased"] as const satisfies FeedChange[];

export function parseName(text: string): string {
  if (!/^[A-Za-z0-9_-]{1,100}$/.test(text)) throw new InvalidArgumentError("Give 1 to 100 letters, digits, - and _.");
  return text;
}

export function collectTexts(text: string, previous: string[] = []): string[] {
  return previous.includes(text) ? previous : [...previous, text];
}

export function collectCountries(text: string, previous: string[] = []): string[] {
  return collectTexts(parseCountry(text), previous);
}

export function collectChanges(text: string, previous: FeedChange[] = []): FeedChange[] {
  const change = feedChanges.find((one) => one === text);
  if (change === undefined) throw new InvalidArgumentError(`Give one of ${feedChanges.join(", ")}.`);
  return previous.includes(change) ? previous : [...previous, change];
}

export function modeOption() {
  return new Option(
    "--mode <mode>",
    "latest: after a failure, only the newest change of a booking is posted; every: each",
  ).choices(["latest", "every"] as const);
}

export function payloadOption() {
  return new Option("--payload <payload>", "thin: ids and names of changed fields; full: the booking, too").choices([
    "thin",
    "full",
  ] as const);
}

/** For the help of commands that are given a URL. */
export const postingVariables = `
Environment:
  WEBHOOKS_ALLOW_PRIVATE  true: http and private addresses are allowed, as for webhooks
  WEBHOOKS_PROXY_URL      as for webhooks: a proxy decides about addresses
`;

const maxDays = 3_660;

export function parseDays(text: string): number {
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
