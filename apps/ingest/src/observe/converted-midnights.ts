import { type BookingPayload, bookingReferenceOf, dayBeforeAdvice, type FieldWarning } from "@booking-events/schema";

/** Fewer date-times say too little about a partner. */
const minTimes = 20;
/** Of a partner's last ones, so that it can correct its sender. */
const maxTimes = 50;
const shareOfMidnights = 0.9;

const dateFields = ["consumerTripArrivalDate", "consumerTripReturnDate"] as const;

/**
 * Notices partners that send days as local midnights, converted to UTC: the day as written is then the day before. No
 * single event shows it, because a flight may land at 22:00 UTC, but all flights of a partner do not.
 */
export class ConvertedMidnights {
  readonly #partners = new Map<string, LastTimes>();

  /**
   * Remembers the dates of a valid payload of a create or update.
   *
   * @returns a warning for each date that is probably a day early
   */
  check(partner: string, payload: BookingPayload): FieldWarning[] {
    const warnings: FieldWarning[] = [];
    for (const field of dateFields) {
      const sent = (payload as Record<string, unknown>)[field];
      const time = typeof sent === "string" ? timeInUtc(sent) : undefined;
      if (time === undefined) continue;
      const times = this.#timesOf(partner);
      times.add(hash(`${field} ${bookingReferenceOf(payload)}`), time);
      if (times.isMidnightInTheEast(time)) {
        warnings.push({ message: dayBeforeAdvice, code: "perhaps-the-day-before", propertyPath: [field], field });
      }
    }
    return warnings;
  }

  /** Forgets all other partners. */
  keep(partners: readonly { id: string }[]): void {
    const ids = new Set(partners.map(({ id }) => id));
    for (const id of this.#partners.keys()) if (!ids.has(id)) this.#partners.delete(id);
  }

  #timesOf(partner: string): LastTimes {
    const times = this.#partners.get(partner) ?? new LastTimes();
    this.#partners.set(partner, times);
    return times;
  }
}

/** The last times of day that a partner sent. Each date of a booking counts once, however often it is sent. */
class LastTimes {
  /** By booking and field, oldest first. */
  readonly #times = new Map<number, number>();
  readonly #counts = new Map<number, number>();

  add(date: number, time: number): void {
    this.#remove(date);
    const [oldest] = this.#times.keys();
    if (oldest !== undefined && this.#times.size >= maxTimes) this.#remove(oldest);
    this.#times.set(date, time);
    this.#counts.set(time, this.#countOf(time) + 1);
  }

  /**
   * Whether nearly all times are this one, or an hour earlier or later, as midnights are where clocks change with the
   * season. Only east of Greenwich is a midnight in UTC on the day before, at 10:00 or later. 00:00 in UTC itself is on
   * the day as written.
   */
  isMidnightInTheEast(time: number): boolean {
    if (time < earliestMidnight || this.#times.size < minTimes) return false;
    const inOtherSeason = Math.max(
      this.#countOf((time + minutesPerHour) % minutesPerDay),
      this.#countOf(time - minutesPerHour),
    );
    return this.#countOf(time) + inOtherSeason >= shareOfMidnights * this.#times.size;
  }

  #countOf(time: number): number {
    return this.#counts.get(time) ?? 0;
  }

  #remove(date: number): void {
    const time = this.#times.get(date);
    if (time === undefined) return;
    this.#times.delete(date);
    const count = this.#countOf(time) - 1;
    if (count === 0) this.#counts.delete(time);
    else this.#counts.set(time, count);
  }
}

const minutesPerHour = 60;
const minutesPerDay = 24 * minutesPerHour;
/** In UTC+14, the easternmost time zone. */
const earliestMidnight = 10 * minutesPerHour;
/** Of a time that is no time zone's midnight. */
const otherTime = -1;

/** @returns minutes since 00:00, {@link otherTime}, or undefined if the text is not a time in UTC */
function timeInUtc(sent: string): number | undefined {
  if (sent.length > maxDateTimeLength) return undefined;
  const [, hour, minute, rest = ""] = utcTime.exec(sent) ?? [];
  if (hour === undefined) return undefined;
  return /[1-9]/.test(rest) || Number(minute) % 15 !== 0 ? otherTime : Number(hour) * minutesPerHour + Number(minute);
}

/** Of a date that the contract allows, the hour, the minute, and the second with its fraction. */
const utcTime = /[Tt ]([0-9]{2}):([0-9]{2})([0-9:.]*) ?(?:[Zz]|UTC|GMT|[+-]00(?::?00)?)(?:\[[^\]]*\])?\s*$/;
const maxDateTimeLength = 128;

/** FNV-1a. Two dates of a partner with the same hash count once, which does no harm. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  const end = Math.min(text.length, maxHashedLength);
  for (let index = 0; index < end; index += 1) value = Math.imul(value ^ text.charCodeAt(index), 0x01000193);
  return value;
}

const maxHashedLength = 512;
