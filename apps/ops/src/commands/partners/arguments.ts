import { type EventKind, eventKinds } from "@booking-events/schema";
import { readCountry } from "@booking-events/schema/normalise";
import { InvalidArgumentError } from "@commander-js/extra-typings";

export function parseKinds(text: string): EventKind[] {
  const names = text.split(",").map((name) => name.trim());
  if (!names.every((name) => eventKinds.some((kind) => kind === name))) {
    throw new InvalidArgumentError(`Give one or more of ${eventKinds.join(", ")}, separated by commas.`);
  }
  return eventKinds.filter((kind) => names.includes(kind));
}

export function parseRate(text: string): number {
  const perSecond = Number(text);
  if (!/^\d+(\.\d+)?$/.test(text) || perSecond < 0.01)
    throw new InvalidArgumentError("Give a number of at least 0.01.");
  return perSecond;
}

const sizePattern = /^(\d+(?:\.\d+)?) ?(B|kB|MB|GB|TB)?$/i;
const sizeUnits = ["b", "kb", "mb", "gb", "tb"];

/** For example: 5GB */
export function parseQuota(text: string): number {
  const [, number, unit = "b"] = sizePattern.exec(text) ?? [];
  const bytes = Math.round(Number(number) * 1_000 ** sizeUnits.indexOf(unit.toLowerCase()));
  if (!(bytes >= 1 && bytes <= Number.MAX_SAFE_INTEGER))
    throw new InvalidArgumentError("Give a number of bytes, such as 500MB or 5GB.");
  return bytes;
}

export function parseBurst(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError("Give a whole number of at least 1.");
  return Number(text);
}

export function parseCountry(text: string): string {
  const country = readCountry(text);
  if (country === undefined) throw new InvalidArgumentError("Give an ISO 3166-1 alpha-2 code, such as GB.");
  return country;
}
