import { type PaceWindow, readPaces } from "@booking-events/store";
import type { Context } from "../context.ts";
import { findRefusals } from "../partners/find-refusals.ts";
import { withDatabase } from "../services/database.ts";

const minuteMs = 60_000;
const weekMs = 7 * 24 * 60 * minuteMs;
const windowMs = 15 * minuteMs;
const slotMs = 30 * minuteMs;
const slotsOfDay = 48;
/** In each window: they tell how fast events came. */
const maxLooked = 100;

/** Events a minute in some time, and in the same time a week before. */
interface Pace {
  perMinute: number;
  perMinuteLastWeek: number;
  /** Of accepted events that had warnings. Null: there was none. */
  warnedShare: number | null;
}

/** What came of a partner in the last quarter of an hour. */
export interface PartnerTraffic extends Pace {
  partner: string;
  /** Requests that were refused, as far as they are recorded. Null: Redis does not tell. */
  refused: number | null;
}

/** Compares what partners send with a week before. */
export async function readTraffic(context: Context, partners: string[]): Promise<PartnerTraffic[]> {
  const until = context.now();
  const from = new Date(until.getTime() - windowMs);
  const windows = partners.map(() => ({ from, until }));
  const [paces, refused] = await Promise.all([comparePaces(context, windows, partners), countRefused(context, from)]);
  return paces.map((pace, index) => {
    const partner = partners[index] ?? "";
    return { ...pace, partner, refused: refused === null ? null : (refused.get(partner) ?? 0) };
  });
}

/** The rates are worth showing without them. */
async function countRefused(context: Context, since: Date): Promise<Map<string | null, number> | null> {
  const refusals = await findRefusals(context, { partner: undefined, since }).catch(() => null);
  if (refusals === null) return null;
  const byPartner = Map.groupBy(refusals, ({ partner }) => partner);
  return new Map([...byPartner].map(([partner, { length }]) => [partner, length]));
}

/** What was received from a time on. */
export interface Beat extends Pace {
  at: Date;
}

/**
 * The last 24 hours of all partners: whole half hours, so that the picture of two looks is the same, and the one that has
 * begun.
 */
export async function readDay(context: Context): Promise<Beat[]> {
  const nowMs = context.now().getTime();
  const beganMs = Math.floor(nowMs / slotMs) * slotMs;
  const windows = Array.from({ length: slotsOfDay }, (_, index) => {
    const fromMs = beganMs - (slotsOfDay - 1 - index) * slotMs;
    return { from: new Date(fromMs), until: new Date(Math.min(fromMs + slotMs, nowMs)) };
  });
  const paces = await comparePaces(context, windows);
  return paces.map((pace, index) => ({ ...pace, at: windows[index]?.from ?? new Date(nowMs) }));
}

/** @param partners of each window. Undefined: all, in each */
async function comparePaces(context: Context, windows: PaceWindow[], partners?: string[]): Promise<Pace[]> {
  const aWeekBefore = (time: Date) => new Date(time.getTime() - weekMs);
  const before = windows.map(({ from, until }) => ({ from: aWeekBefore(from), until: aWeekBefore(until) }));
  const options = { looked: maxLooked, ...(partners && { partners: [...partners, ...partners] }) };
  const paces = await withDatabase(context, (pool) => readPaces(pool, [...windows, ...before], options));
  return windows.map(({ from, until }, index) => {
    const [now, then] = [paces[index], paces[windows.length + index]];
    const minutes = (until.getTime() - from.getTime()) / minuteMs;
    const toRate = (events = 0) => (minutes === 0 ? 0 : events / minutes);
    return {
      perMinute: toRate(now?.events),
      perMinuteLastWeek: toRate(then?.events),
      warnedShare: now === undefined || now.events === 0 ? null : now.warnedShare,
    };
  });
}
