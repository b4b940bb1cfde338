import { type AnswerCount, readAllAnswerCounts } from "@booking-events/queue";
import type { Context } from "../context.ts";
import { readFile, requirePartner } from "../services/partners-file.ts";
import { withRedis } from "../services/queue.ts";

const hourMs = 60 * 60_000;
const hoursOfWeek = 7 * 24;

/** A partner's events by the hour, from the first of 168 hours to the one that has begun. */
export interface Week {
  hours: { at: Date; accepted: number; acceptedWeekBefore: number }[];
  accepted: number;
  /** Requests with a valid secret that got a 4xx. */
  refused: number;
  acceptedWeekBefore: number;
  refusedWeekBefore: number;
}

/** Reads how many events a partner has sent in the last week, and in the one before. Dry runs don't count. */
export async function readWeek(context: Context, partner: string): Promise<Week> {
  const now = context.now();
  const counts = await withRedis(context, (redis) => readAllAnswerCounts({ ...redis, partner, now }));
  const accepted = sumByHour(counts.filter(({ code }) => code === "accepted"));
  const refused = sumByHour(counts.filter(({ status }) => status >= 400 && status < 500));
  const firstMs = (Math.floor(now.getTime() / hourMs) - hoursOfWeek + 1) * hourMs;
  const hours = Array.from({ length: hoursOfWeek }, (_, index) => firstMs + index * hourMs);
  const before = hours.map((ms) => ms - hoursOfWeek * hourMs);
  const sum = (byHour: Map<number, number>, of: number[]) => of.reduce((total, ms) => total + (byHour.get(ms) ?? 0), 0);
  return {
    hours: hours.map((ms, index) => ({
      at: new Date(ms),
      accepted: accepted.get(ms) ?? 0,
      acceptedWeekBefore: accepted.get(before[index] ?? 0) ?? 0,
    })),
    accepted: sum(accepted, hours),
    refused: sum(refused, hours),
    acceptedWeekBefore: sum(accepted, before),
    refusedWeekBefore: sum(refused, before),
  };
}

/**
 * Does the same for several partners.
 *
 * @param partner undefined: all
 */
export async function readWeeks(
  context: Context,
  partner: string | undefined,
): Promise<(Week & { partner: string })[]> {
  const partners =
    partner === undefined ? readFile(context, (file) => file.partners) : [requirePartner(context, partner)];
  const weeks = [];
  for (const { id } of partners) weeks.push({ partner: id, ...(await readWeek(context, id)) });
  return weeks;
}

function sumByHour(counts: AnswerCount[]): Map<number, number> {
  const byHour = new Map<number, number>();
  for (const { hour, count } of counts) {
    const ms = Date.parse(`${hour}:00Z`);
    byHour.set(ms, (byHour.get(ms) ?? 0) + count);
  }
  return byHour;
}
