// <Time at={date} />: "5 minutes ago" with the exact time, in UTC, beside it. Null is shown as "never" or what `none` says.
// <Day text="2026-11-26" />: a calendar day.
import type { VNode } from "preact";
import { useView } from "./view.ts";

const steps = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1_000],
] as const;

const relative = new Intl.RelativeTimeFormat("en", { numeric: "always", style: "short" });

export function Time({ at, none = "never" }: { at: Date | null; none?: string }): VNode {
  const { now } = useView();
  if (at === null) return <span class="faint">{none}</span>;
  // The partners file has such times if somebody has edited it.
  if (Number.isNaN(at.getTime())) return <span class="faint">not a time</span>;
  return (
    <time dateTime={at.toISOString()} title={at.toISOString()} class="time">
      <span>{describeDistance(at, now)}</span> <span class="exact">{formatExact(at, now)}</span>
    </time>
  );
}

/** "2 hr. ago", "in 5 min." */
function describeDistance(at: Date, now: Date): string {
  const ms = at.getTime() - now.getTime();
  const [unit, unitMs] = steps.find(([, stepMs]) => Math.abs(ms) >= stepMs) ?? steps[3];
  return Math.abs(ms) < 1_000 ? "now" : relative.format(Math.trunc(ms / unitMs), unit);
}

/** In UTC, as all times here. The day is left out if it is today. */
function formatExact(at: Date, now: Date): string {
  const [day = "", time = ""] = at.toISOString().slice(0, 19).split("T");
  return day === now.toISOString().slice(0, 10) ? time : `${day} ${time.slice(0, 5)}`;
}

/** 13:05, or 13:05:02, in UTC. */
export function formatClock(at: Date, hasSeconds = false): string {
  return at.toISOString().slice(11, hasSeconds ? 19 : 16);
}

/** 11-26 13:05, in UTC. */
export const formatDayAndClock = (at: Date): string => `${at.toISOString().slice(5, 10)} ${formatClock(at)}`;

export function Day({ text }: { text: string }): VNode {
  return (
    <time dateTime={text} class="day">
      {text}
    </time>
  );
}
