import type { EventKind } from "@booking-events/schema";

export interface Place {
  id: string;
  sequence: number;
}

export interface KeyedEvent extends Place {
  kind: EventKind;
  idempotencyKey: string;
  /** Equal if and only if the canonical contents are. */
  contentDigest: string;
}

/** How a booking's log has used an event's key. */
export interface KeyUses {
  /** The earliest event with the key. Null: there is none. */
  first: (Place & { kind: EventKind }) | null;
  /** The event that counts among those with the same key, kind and content. Null: there is none. */
  same: Place | null;
}

export interface Repeats {
  /** New events that repeat another event: the id of the event that counts, by the id of the repetition. */
  duplicates: Map<string, string>;
  /** Logged events that no longer count, since they repeat a new event that was received before them. */
  displaced: (Place & { duplicateOf: string })[];
  /** Ids of new events that count, and use the key of an earlier event with another kind or content. */
  reusing: Set<string>;
  /** Logged events that turn out to do the same. */
  reusingInLog: { id: string; kind: EventKind }[];
}

/**
 * Decides which events of a booking count. Events with the same idempotency key, kind and content are one event to
 * their sender: the event that was received first counts, whatever the order of arrival. An event with the same key and
 * another kind or content counts too. All of these but the earliest are noted, since the sender has made a mistake.
 *
 * @param events new events of one booking, in sequence order. Events without a key are skipped
 * @param findUses how the log has used an event's key
 */
export function findRepeats<Event extends Omit<KeyedEvent, "idempotencyKey"> & { idempotencyKey: string | null }>(
  events: readonly Event[],
  findUses: (event: Event) => KeyUses,
): Repeats {
  const repeats: Repeats = { duplicates: new Map(), displaced: [], reusing: new Set(), reusingInLog: [] };
  const keyed = events.filter(({ idempotencyKey }) => idempotencyKey !== null);
  for (const withKey of Map.groupBy(keyed, ({ idempotencyKey }) => idempotencyKey).values()) {
    const counting = countOnce(withKey, findUses, repeats);
    noteReuse(counting, findUses(withKey[0] as Event).first, repeats);
  }
  return repeats;
}

/**
 * @param events events with the same key
 * @returns the events that count
 */
function countOnce<Event extends Omit<KeyedEvent, "idempotencyKey">>(
  events: readonly Event[],
  findUses: (event: Event) => KeyUses,
  { duplicates, displaced }: Repeats,
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

/** Of the events that count, only the earliest one may use the key. */
function noteReuse(
  counting: readonly (Place & { kind: EventKind })[],
  loggedFirst: KeyUses["first"],
  { displaced, reusing, reusingInLog }: Repeats,
): void {
  const [newFirst, ...others] = counting.toSorted(comparePlaces);
  if (newFirst === undefined) return;
  for (const { id } of others) reusing.add(id);
  if (loggedFirst === null) return;
  if (comparePlaces(loggedFirst, newFirst) < 0) reusing.add(newFirst.id);
  else if (!displaced.some(({ id }) => id === loggedFirst.id))
    reusingInLog.push({ id: loggedFirst.id, kind: loggedFirst.kind });
}

/** Compares sequences, and then ids if the sequences are equal. */
export function comparePlaces(one: Place, other: Place): number {
  if (one.sequence !== other.sequence) return one.sequence - other.sequence;
  if (one.id === other.id) return 0;
  return one.id < other.id ? -1 : 1;
}
