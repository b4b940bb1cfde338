import { Refusal } from "@booking-events/http";
import { countDaysKept, toDay } from "@booking-events/queue";
import { lookupAnswers } from "@booking-events/schema";
import { readParameters } from "../read-parameters.ts";

export interface ActivityWindow {
  /** Each hour, the oldest first. The last one may end now. */
  hours: { from: Date; until: Date }[];
  /** The days in UTC that the hours touch, the newest first. */
  days: string[];
}

const hourMs = 3_600_000;
const hoursShown = 48;
const hoursOfDay = 24;

/**
 * @param query as Node has it: `day=2027-05-02`, or nothing for the last 48 hours
 * @throws Refusal for a day of which too little is known, or a query that cannot be read
 */
export function readActivityWindow(query: string, now: Date): ActivityWindow {
  const [day, ...more] = readParameters(query)("day");
  if (day === undefined) return toWindow(Math.floor(now.getTime() / hourMs) * hourMs - (hoursShown - 1) * hourMs, now);
  const known = Array.from({ length: countDaysKept }, (_, age) =>
    toDay(new Date(now.getTime() - age * hoursOfDay * hourMs)),
  );
  if (more.length > 0 || !known.includes(day)) throw new Refusal(lookupAnswers.invalidDay);
  return toWindow(Date.parse(day), now, hoursOfDay);
}

function toWindow(firstMs: number, now: Date, count = hoursShown): ActivityWindow {
  const hours = Array.from({ length: count }, (_, index) => ({
    from: new Date(firstMs + index * hourMs),
    until: new Date(Math.min(firstMs + (index + 1) * hourMs, now.getTime())),
  })).filter(({ from }) => from <= now);
  const days = new Set(hours.map(({ from }) => toDay(from)).reverse());
  return { hours, days: [...days] };
}
