import type { EventKind } from "@booking-events/schema";

/** A place in the order of a booking's events. */
export interface Place {
  id: string;
  sequence: number;
}

/** An event that carries an idempotency key. */
export interface KeyedEvent extends Place {
  kind: EventKind;
  idempotencyKey: string;
  /** Hex of the SHA-256 of the canonical content. */
  contentDigest: string;
}

/** What a booking's log knows of an event's key. */
export interface KeyUses {
  /** The earliest event with the key; null: there is none. */
  first: (Place & { kind: EventKind }) | null;
  /** The one that counts of those with the key, the kind and the content; null: there is none. */
  same: Place | null;
}

export interface KeySettlement {
  /** New events that repeat another: by their ids, the id of the one that counts. */
  duplicates: Map<string, string>;
  /** Events in the log that counted until now, and repeat a new one that was received before them: likewise. */
  displaced: (Place & { duplicateOf: string })[];
  /** New events that count, and whose key an earlier event with another kind or content has. */
  reusing: Set<string>;
  /** Events in the log that count, and turn out to be such ones now. */
  reusingInLog: { id: string; kind: EventKind }[];
}

/**
 * Which events of a booking are one event to their sender: those with the same idempotency key, kind and content. The
 * one received first counts, in whatever order they arrive. The same key with another kind or content is an event of its
 * own; each such one but the earliest is noted, since its sender has made a mistake.
 *
 * @param events new events of one booking, in their order; those without a key are passed over
 * @param findUses what the log knows of an event's key
 */
export function settleKeys<Event extends Omit<KeyedEvent, "idempotencyKey"> & { idempotencyKey: string | null }>(
  events: readonly Event[],
  findUses: (event: Event) => KeyUses,
): KeySettlement {
  const settlement: KeySettlement = { duplicates: new Map(), displaced: [], reusing: new Set(), reusingInLog: [] };
  const keyed = events.filter(({ idempotencyKey }) => idempotencyKey !== null);
  for (const withKey of Map.groupBy(keyed, ({ idempotencyKey }) => idempotencyKey).values()) {
    const counting = countOnce(withKey, findUses, settlement);
    noteReuse(counting, findUses(withKey[0] as Event).first, settlement);
  }
  return settlement;
}

/** @returns those of the events, all with one key, that count */
function countOnce<Event extends Omit<KeyedEvent, "idempotencyKey">>(
  events: readonly Event[],
  findUses: (event: Event) => KeyUses,
  { duplicates, displaced }: KeySettlement,
): Event[] {
  const counting: Event[] = [];
  for (const same of Map.groupBy(events, ({ kind, contentDigest }) => `${kind} ${contentDigest}`).values()) {
    const [earliest] = same as [Event];
    const logged = findUses(earliest).same;
    const isLoggedFirst = logged !== null && comparePlaces(logged, earliest) < 0;
    const first = isLoggedFirst ? logged : earliest;
    if (!isLoggedFirst) counting.push(earliest);
    if (!isLoggedFirst && logged !== null) displaced.push({ ...logged, duplicateOf: earliest.id });
    for (const { id } of same) if (id !== first.id) duplicates.set(id, first.id);
  }
  return counting;
}

/** Of all events with one key that count, the earliest one has it by right. */
function noteReuse(
  counting: readonly (Place & { kind: EventKind })[],
  loggedFirst: KeyUses["first"],
  { displaced, reusing, reusingInLog }: KeySettlement,
): void {
  const [newFirst, ...others] = counting.toSorted(comparePlaces);
  if (newFirst === undefined) return;
  for (const { id } of others) reusing.add(id);
  if (loggedFirst === null) return;
  if (comparePlaces(loggedFirst, newFirst) < 0) reusing.add(newFirst.id);
  else if (!displaced.some(({ id }) => id === loggedFirst.id))
    reusingInLog.push({ id: loggedFirst.id, kind: loggedFirst.kind });
}

/** Sequence first, then id, which only tells events of one sequence apart. */
export function comparePlaces(one: Place, other: Place): number {
  if (one.sequence !== other.sequence) return one.sequence - other.sequence;
  if (one.id === other.id) return 0;
  return one.id < other.id ? -1 : 1;
}
