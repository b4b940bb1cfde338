import { type Pace, type PaceWindow, type Queryable, readPaces } from "@booking-events/store";
import type { Context } from "../context.ts";
import { findRefusals } from "../partners/find-refusals.ts";
import { withDatabase } from "../services/database.ts";

const minuteMs = 60_000;
const weekMs = 7 * 24 * 60 * minuteMs;
const windowMs = 15 * minuteMs;
/** Of each partner, now and a week before. */
const lookedOfPartner = 100;
const slotMs = 30 * minuteMs;
const slotsOfDay = 48;
const lookedOfSlot = 100;

/** What came of a partner in the last quarter of an hour. */
export interface PartnerTraffic {
  partner: string;
  perMinute: number;
  /** In the same quarter of an hour a week before. */
  perMinuteLastWeek: number;
  /** Of accepted events that had warnings. Null: there was none. */
  warnedShare: number | null;
  /** Requests that were refused, as far as they are recorded. Null: Redis does not tell. */
  refused: number | null;
}

/** Compares what partners send with a week before. */
export async function readTraffic(context: Context, partners: string[]): Promise<PartnerTraffic[]> {
  const now = context.now();
  const windows = partners.flatMap(() => [
    { from: new Date(now.getTime() - windowMs), until: now },
    { from: new Date(now.getTime() - weekMs - windowMs), until: new Date(now.getTime() - weekMs) },
  ]);
  const [paces, refused] = await Promise.all([
    withDatabase(context, (pool) =>
      readPaces(pool, windows, { partners: partners.flatMap((id) => [id, id]), looked: lookedOfPartner }),
    ),
    countRefused(context, new Date(now.getTime() - windowMs)),
  ]);
  return partners.map((partner, index) => {
    const [current, before] = paces.slice(2 * index, 2 * index + 2) as [Pace, Pace];
    return {
      partner,
      perMinute: (current.events * minuteMs) / windowMs,
      perMinuteLastWeek: (before.events * minuteMs) / windowMs,
      warnedShare: current.events === 0 ? null : current.warnedShare,
      refused: refused === null ? null : (refused.get(partner) ?? 0),
    };
  });
}

/** The rates are worth showing without them. */
async function countRefused(context: Context, since: Date): Promise<Map<string | null, number> | null> {
  const refusals = await findRefusals(context, { partner: undefined, since }).catch(() => null);
  if (refusals === null) return null;
  const byPartner = Map.groupBy(refusals, ({ partner }) => partner);
  return new Map([...byPartner].map(([partner, { length }]) => [partner, length]));
}

/** How many events a minute were received, from a time on, and a week before. */
export interface Beat {
  at: Date;
  perMinute: number;
  perMinuteLastWeek: number;
}

/** The last 24 hours of all partners, by half an hour. */
export function readDay(context: Context): Promise<Beat[]> {
  const windows = toWindows(context.now(), { slotMs, count: slotsOfDay });
  return withDatabase(context, (pool) => compare(pool, windows, { slotMs, looked: lookedOfSlot }));
}

/** Of whole slots, so that the picture of two looks is the same, and the one that has begun. */
function toWindows(now: Date, { slotMs, count }: { slotMs: number; count: number }): PaceWindow[] {
  const beganMs = Math.floor(now.getTime() / slotMs) * slotMs;
  return Array.from({ length: count }, (_, index) => {
    const fromMs = beganMs - (count - 1 - index) * slotMs;
    return { from: new Date(fromMs), until: new Date(Math.min(fromMs + slotMs, now.getTime())) };
  });
}

async function compare(
  client: Queryable,
  windows: PaceWindow[],
  { slotMs, looked }: { slotMs: number; looked: number },
): Promise<Beat[]> {
  const before = windows.map(({ from }) => {
    const fromMs = from.getTime() - weekMs;
    return { from: new Date(fromMs), until: new Date(fromMs + slotMs) };
  });
  const paces = await readPaces(client, [...windows, ...before], { looked });
  return windows.map(({ from, until }, index) => ({
    at: from,
    perMinute: toPerMinute(paces[index], until.getTime() - from.getTime()),
    perMinuteLastWeek: toPerMinute(paces[windows.length + index], slotMs),
  }));
}

function toPerMinute(pace: Pace | undefined, windowMs: number): number {
  return windowMs === 0 ? 0 : ((pace?.events ?? 0) * minuteMs) / windowMs;
}
