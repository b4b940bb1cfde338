import { readTable } from "./read-table.ts";
import { remember } from "./remember.ts";
import { renamedZones, windowsZones } from "./tables/time-zones.ts";

/**
 * Reads a time zone as its IANA name of today: from a name or a link such as `Asia/Calcutta` in any case, from Windows'
 * name, or from an offset in whole hours, which is `Etc/GMT-2` for +02:00. Abbreviations such as BST and EST mean several
 * zones.
 */
export function readTimeZone(sent: string): string | undefined {
  zones ??= createZones();
  const zone = zones.get(sent);
  if (zone !== undefined) return zone;
  const text = sent.trim();
  if (text.length > maxLength) return undefined;
  const key = toKey(text);
  return zones.get(key) ?? readOffset(key) ?? readLink(text);
}

/** `America/Argentina/ComodRivadavia` has 32. */
const maxLength = 50;

/** By name, as it is written and in small letters. */
let zones: ReadonlyMap<string, string> | undefined;

function createZones(): ReadonlyMap<string, string> {
  const names = [...Intl.supportedValuesOf("timeZone"), ...regionalZones].map((name) => [name, name] as const);
  // Some runtimes list the old name, some the one of today.
  const pairs = [...names, ...toPairs(renamedZones)];
  return new Map([
    ...toPairs(windowsZones),
    ...utcNames.map((name) => [name, "UTC"] as const),
    ...pairs.flatMap(([name, zone]) => [[name, zone] as const, [toKey(name), zone] as const]),
  ]);
}

function toPairs(table: string): (readonly [string, string])[] {
  return readTable(table).map(([name = "", zone = ""]) => [name, zone] as const);
}

const utcNames = ["utc", "UTC", "gmt", "gmt0", "z", "uct", "etc/utc", "etc/gmt", "etc/uct", "coordinateduniversaltime"];

/** IANA's names of zones that are no place. Runtimes disagree about what they are links to. */
const regionalZones = ["CET", "EET", "MET", "WET", "EST5EDT", "CST6CDT", "MST7MDT", "PST8PDT"];

/** `america/new york`, `America/New_York` and `W. Europe Standard Time` are looked up without case and blanks. */
function toKey(name: string): string {
  return name.toLowerCase().replace(/[\s_]/g, "");
}

/** Etc's signs are those of POSIX: west of Greenwich is positive. There is no name for half an hour. */
function readOffset(key: string): string | undefined {
  const [, sign, hours, minutes = "00"] = /^(?:utc|gmt)?([+-])([0-9]{1,2}):?([0-9]{2})?$/.exec(key) ?? [];
  const etc = /^etc\/gmt([+-])([0-9]{1,2})$/.exec(key);
  if (etc !== null) return toEtc(etc[1] === "-" ? "+" : "-", Number(etc[2]));
  if (sign === undefined || minutes !== "00") return undefined;
  return toEtc(sign, Number(hours));
}

function toEtc(sign: string, hours: number): string | undefined {
  if (hours === 0) return "UTC";
  if (sign === "+") return hours <= 14 ? `Etc/GMT-${hours}` : undefined;
  return hours <= 12 ? `Etc/GMT+${hours}` : undefined;
}

/** Reads a name that the runtime only knows as another name of a zone. To ask it takes long. */
const readLink = remember((text: string): string | undefined => {
  const name = text.replaceAll(" ", "_");
  // Of names without a slash, abbreviations are left out.
  if (!/^[A-Za-z]+(?:[/_+-][A-Za-z0-9]+)*$/.test(name) || /^[A-Za-z]{3}$/.test(name)) return undefined;
  const zone = resolve(name);
  return zone === undefined ? undefined : zones?.get(toKey(zone));
});

function resolve(timeZone: string): string | undefined {
  try {
    return new Intl.DateTimeFormat("en", { timeZone }).resolvedOptions().timeZone;
  } catch {
    return undefined;
  }
}
