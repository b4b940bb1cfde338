import type { FeedChange } from "@booking-events/operations";
import { InvalidArgumentError } from "@commander-js/extra-typings";
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
