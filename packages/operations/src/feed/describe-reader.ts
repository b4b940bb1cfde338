import type { FeedReader } from "@booking-events/store";
import { describeAge, describeCount } from "../describe.ts";

export function describeReaderState(reader: FeedReader): string {
  if (reader.pausedAt !== null) return "paused";
  if (reader.lastId === null) return "starts over";
  if (reader.hasMissedChanges) return "has missed changes";
  if (reader.breakerOpenedAt !== null) return "fails: one booking at a time is tried";
  return reader.lagMs === 0 ? "up to date" : "reads";
}

/** For example: 3 changes, 5 min */
export function describeBehind({ lagChanges, lagMs }: FeedReader): string {
  return lagMs === 0 ? "" : `${describeCount(lagChanges, "change")}, ${describeAge(lagMs)}`;
}

/** @param reader undefined: it has not begun */
export function toProgress(reader: FeedReader | undefined) {
  const { lagChanges = 0, lagMs = 0, parked = 0, dead = 0, breakerOpenedAt = null, failingSince = null } = reader ?? {};
  return { lagChanges, lagMs, parked, dead, breakerOpenedAt, failingSince };
}
