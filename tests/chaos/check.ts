import { canonicalContent } from "./canonical-content.ts";
import { findWrongRestores, isOperators, namesOf, type Restore } from "./check-restores.ts";
import { type ExpectedBooking, expectBookings, nameBooking } from "./oracle.ts";
import type { Attempt, Post } from "./post-events.ts";
import type { BookingRow, ChangeRow, DatabaseContent, LoggedEvent } from "./read-database.ts";

/** What each kind of violation is. */
export const violationKinds = {
  lost: "acknowledged, and not in the log",
  unexpected: "in the log or answered, and nobody can explain it",
  "out of order": "sent after another was acknowledged, logged before it",
  overtaken: "given up, and logged after newer ones were acknowledged",
  "wrong state": "bookings that are not the fold of their events",
  "wrong restore": "bookings that an operator has not put back to what they were",
  "wrong feed": "bookings that the feed of changes shows otherwise",
  // All events are good, so none may end as one.
  dead: "dead letters",
  "attempt lost": "attempts that an outage has cost",
  crashed: "processes that ended by themselves or did not recover",
  stuck: "queues that did not become empty",
  stranger: "what those of another database have done",
  "wrong delivery": "what subscribers did not get, or out of turn, or not as it is in the feed",
  "guest stays": "what is left of erased guests, in the tables, with a reader of the feed or posted to a subscriber",
} as const;
export type ViolationKind = keyof typeof violationKinds;

export interface Violation {
  kind: ViolationKind;
  what: string;
}

/** What was seen from outside. */
export interface Evidence {
  posts: readonly Post[];
  database: DatabaseContent;
  /** Read during the run, by one who asks for what comes after the last id. Default: nobody did. */
  followedChangeIds?: readonly number[];
  duplicateWindowMs: number;
  /** Names of the bookings that an operator has erased. Default: none. */
  erased?: ReadonlySet<string>;
  /** What an operator wanted to put back. Default: nothing. */
  restores?: readonly Restore[];
}

export type Tally = ReturnType<typeof count>;

/** Compares what partners were told with what is in PostgreSQL, and that with the oracle. */
export function check(evidence: Evidence): { tally: Tally; violations: Violation[] } {
  const { posts, database, followedChangeIds, duplicateWindowMs, erased = new Set(), restores = [] } = evidence;
  const logged = new Map(database.log.map((event) => [event.id, event]));
  const acknowledged = posts.flatMap((post) => toAcknowledged(post, logged));
  const receipts = new Map(acknowledged.map((one) => [one.eventId, one]));
  const posted = database.log.filter((event) => !isOperators(event) || erasedReference.test(event.reference));
  const unacknowledged = posted.filter(({ id }) => !receipts.has(id));
  const describeSent = (post: Post) => (erased.has(nameBooking(post)) ? describeErased(post) : describe(post));
  const postsByName = Map.groupBy(posts, describeSent);
  const attemptsFor = (name: string) =>
    (postsByName.get(name) ?? []).flatMap(({ attempts }) => attempts.filter(mayHaveBeenQueued));
  const kept = withoutErased(database);
  const { bookings, ...keys } = expectBookings(kept.log, duplicateWindowMs);
  const states = new Map(kept.bookings.map((row) => [nameBooking(row), describeState(row)]));
  const found: Partial<Record<ViolationKind, string[]>> = {
    lost: findLost(acknowledged),
    unexpected: [
      ...findUnexpectedAnswers(posts),
      ...findUnexpectedReceipts(acknowledged),
      ...findAltered(acknowledged, describeSent),
      ...findUnexplained(unacknowledged, attemptsFor, countRestorable(restores, erased)),
    ],
    "out of order": findOutOfOrder(acknowledged),
    overtaken: findOvertaken(posted, receipts, attemptsFor),
    "wrong state": [
      ...findWrongKeys(kept, keys),
      ...findWrongWarnings(kept, keys.warnings),
      ...compare(mapValues(bookings, describeState), states),
    ],
    "wrong restore": findWrongRestores({ log: kept.log, restores, erased, duplicateWindowMs }),
    "wrong feed": [
      ...compare(mapValues(bookings, describeContent), followFeed(kept, states)),
      ...(followedChangeIds === undefined ? [] : findMissedChanges(database.changes, followedChangeIds)),
      ...findGaps(database.changes),
    ],
    dead: database.deadLetters.map(({ eventId, errorCode }) => `${eventId}: ${errorCode}`),
    "guest stays": findStaying(kept, erased),
  };
  return {
    tally: count(evidence, acknowledged.length, unacknowledged.length),
    violations: Object.entries(found).flatMap(([kind, whats]) =>
      whats.map((what) => ({ kind: kind as ViolationKind, what })),
    ),
  };
}

function count({ posts, database }: Evidence, acknowledged: number, unacknowledged: number) {
  const withOutcome = (outcome: string) => database.log.filter((event) => event.outcome === outcome).length;
  return {
    attempted: posts.length,
    /** Posts sent again count again. */
    requests: posts.reduce((sum, { attempts }) => sum + attempts.length, 0),
    acknowledged,
    /** Never acknowledged, whatever the retries. */
    givenUp: posts.length - acknowledged,
    applied: database.log.length,
    /** Of the applied: their acknowledgement never arrived. A retry may have brought the event a second time. */
    unacknowledged,
    /** Of the applied: recorded as repetitions of another. */
    duplicated: withOutcome("duplicate"),
    /** Of the applied: arrived after a later one had been applied. */
    superseded: withOutcome("superseded"),
    bookings: database.bookings.length,
    changes: database.changes.length,
  };
}

interface Acknowledged {
  eventId: string;
  post: Post;
  /** Of the request that was acknowledged. */
  sentAtMs: number;
  acknowledgedAtMs: number;
  /** As it is in the log, if it is there. */
  event: LoggedEvent | undefined;
}

function toAcknowledged(post: Post, logged: Map<string, LoggedEvent>): Acknowledged[] {
  return post.attempts.flatMap(({ sentAtMs, endedAtMs: acknowledgedAtMs, end }) => {
    if (end.result !== "acknowledged") return [];
    const { eventId } = end;
    return [{ eventId, post, sentAtMs, acknowledgedAtMs, event: logged.get(eventId) }];
  });
}

function findLost(acknowledged: Acknowledged[]): string[] {
  return acknowledged
    .filter(({ event }) => event === undefined)
    .map(({ eventId, post }) => `${eventId}: ${describe(post)}`);
}

function findUnexpectedAnswers(posts: readonly Post[]): string[] {
  return posts.flatMap((post) =>
    post.attempts.flatMap(({ end }) => (end.result === "unexpected" ? [`${end.what} to ${describe(post)}`] : [])),
  );
}

function findUnexpectedReceipts(acknowledged: Acknowledged[]): string[] {
  return [...Map.groupBy(acknowledged, ({ eventId }) => eventId)]
    .filter(([, same]) => same.length > 1)
    .map(([eventId, same]) => `${eventId} was the receipt of ${same.length} posts`);
}

function findAltered(acknowledged: Acknowledged[], describeSent: (post: Post) => string): string[] {
  return acknowledged.flatMap(({ eventId, post, event }) => {
    if (event === undefined || describeLogged(event) === describeSent(post)) return [];
    return [`${eventId} is ${describeLogged(event)} in the log, and was ${describeSent(post)}`];
  });
}

/** All unacknowledged attempts that may have brought an event with this description. */
type AttemptsFor = (name: string) => Attempt[];

/**
 * A request without an acknowledgement may have been queued or not. So the log may hold as many equal events as there
 * were such requests, and not one more.
 */
function findUnexplained(unacknowledged: LoggedEvent[], attemptsFor: AttemptsFor, restorable: number): string[] {
  return [...Map.groupBy(unacknowledged, describeLogged)].flatMap(([name, events]) => {
    const restored = events.some(({ reference }) => erasedReference.test(reference)) ? restorable : 0;
    return events.slice(attemptsFor(name).length + restored).map(({ id }) => `${id}: nobody has sent this ${name}`);
  });
}

/** How many events operators may have put back bookings by that were erased afterwards: the log can't tell any more. */
function countRestorable(restores: readonly Restore[], erased: ReadonlySet<string>): number {
  return restores.flatMap(namesOf).filter((name) => erased.has(name)).length;
}

function mayHaveBeenQueued({ end }: Attempt): boolean {
  return end.result !== "acknowledged" && end.result !== "unreachable";
}

/** A partner who waits for the answer before sending the next event relies on this order. */
function findOutOfOrder(acknowledged: Acknowledged[]): string[] {
  const events = acknowledged.flatMap(({ event, ...one }) => (event ? [{ ...one, sequence: event.sequence }] : []));
  const byAnswer = events.toSorted((a, b) => a.acknowledgedAtMs - b.acknowledgedAtMs);
  let answered = 0;
  let latest: (typeof events)[number] | undefined;
  return events
    .toSorted((a, b) => a.sentAtMs - b.sentAtMs)
    .flatMap((event) => {
      for (let next = byAnswer[answered]; next !== undefined; next = byAnswer[answered]) {
        if (next.acknowledgedAtMs >= event.sentAtMs) break;
        if (latest === undefined || next.sequence > latest.sequence) latest = next;
        answered += 1;
      }
      if (latest === undefined || latest.sequence < event.sequence) return [];
      const before = `${latest.eventId} (${latest.sequence}) had been acknowledged`;
      return [`${event.eventId} (${event.sequence}) was sent after ${before}`];
    });
}

/**
 * The log has the events in the order in which they were received. Here that order itself is wrong, so the log can't
 * show it. The times are the senders': an event was received after all events before it in the log had been sent.
 */
function findOvertaken(
  log: readonly LoggedEvent[],
  receipts: Map<string, Acknowledged>,
  attemptsFor: AttemptsFor,
): string[] {
  const acknowledgedByBooking = Map.groupBy(receipts.values(), ({ post }) => nameBooking(post));
  let receivedAfterMs = Number.NEGATIVE_INFINITY;
  const unacknowledged: Late[] = [];
  for (const event of log.toSorted((a, b) => a.sequence - b.sequence)) {
    const receipt = receipts.get(event.id);
    if (receipt !== undefined) {
      receivedAfterMs = Math.max(receivedAfterMs, receipt.sentAtMs);
      continue;
    }
    const name = describeLogged(event);
    const newer = (acknowledgedByBooking.get(nameBooking(event)) ?? []).filter(
      ({ post, acknowledgedAtMs }) => acknowledgedAtMs < receivedAfterMs && describe(post) !== name,
    );
    unacknowledged.push({ event, name, newerSentAtMs: Math.max(...newer.map(({ sentAtMs }) => sentAtMs)) });
  }
  return [...Map.groupBy(unacknowledged, ({ name }) => name)].flatMap(([name, events]) =>
    findLate(events, attemptsFor(name)).map(({ event: { id, sequence }, newerSentAtMs }) => {
      const newer = `another was sent at ${newerSentAtMs}, which was acknowledged before this one was received`;
      return `${id} (${sequence}), ${name}, was given up before ${newer}`;
    }),
  );
}

interface Late {
  event: LoggedEvent;
  name: string;
  /** When the last newer event of its booking was sent that was acknowledged before this one was received. */
  newerSentAtMs: number;
}

/**
 * Any of the attempts may have brought any of the events. They are matched in the service's favour: an event is right
 * if an attempt is left for it that was not given up yet when the newer event was sent.
 */
function findLate(events: Late[], attempts: Attempt[]): Late[] {
  const ends = attempts
    .map(({ endedAtMs, givenUpAtMs = endedAtMs }) => Math.max(endedAtMs, givenUpAtMs))
    .sort((a, b) => b - a);
  let matched = 0;
  return events
    .toSorted((a, b) => b.newerSentAtMs - a.newerSentAtMs)
    .filter(({ newerSentAtMs }) => {
      const isLate = (ends[matched] ?? Number.POSITIVE_INFINITY) < newerSentAtMs;
      if (!isLate) matched += 1;
      return isLate;
    });
}

/** Rows whose bookings have been erased name no booking: see `eraseIdentity`. */
function withoutErased({ log, bookings, changes }: DatabaseContent) {
  const isKept = ({ reference }: { reference: string }) => !erasedReference.test(reference);
  return {
    log: log.filter(isKept).map((event) => ({ ...event, content: event.content ?? "no content" })),
    bookings: bookings.filter(isKept),
    changes: changes.flatMap(({ reference, ...change }) => (reference === null ? [] : [{ ...change, reference }])),
  };
}

const erasedReference = /^(consumer )?erased-[0-9a-f]{32}$/;

type Kept = ReturnType<typeof withoutErased>;

function findStaying({ log, bookings, changes }: Kept, erased: ReadonlySet<string>): string[] {
  const naming = (table: string, rows: { partner: string; reference: string }[]) => {
    const names = new Set(rows.map(nameBooking));
    return [...names].filter((name) => erased.has(name)).map((name) => `${table} still names ${name}`);
  };
  return [...naming("the log", log), ...naming("bookings", bookings), ...naming("the feed", changes)];
}

function findWrongKeys(
  { log }: Kept,
  { keyRepeats, keyReuses }: { keyRepeats: Set<string>; keyReuses: Set<string> },
): string[] {
  const uncounted = log.filter(({ id, outcome }) => keyRepeats.has(id) && outcome !== "duplicate");
  const wronglyWarned = log.filter(({ id, warnings }) => keyReuses.has(id) !== warnings.includes("key-reused"));
  return [
    ...uncounted.map(({ id, outcome }) => `${id} repeats a key and is recorded as ${outcome}`),
    ...wronglyWarned.map(({ id, warnings }) => `${id} has the warnings [${warnings}], which is wrong for its key`),
  ];
}

function findWrongWarnings({ log }: Kept, expected: ReadonlyMap<string, string>): string[] {
  return log.flatMap(({ id, warnings }) => {
    const found = warnings.filter((code) => code === "booking-unknown" || code === "replaced").join();
    return found === (expected.get(id) ?? "")
      ? []
      : [`${id} has the warnings [${warnings}], which the fold does not give`];
  });
}

function findMissedChanges(changes: readonly ChangeRow[], followedChangeIds: readonly number[]): string[] {
  if (changes.map(({ id }) => id).join() === followedChangeIds.join()) return [];
  return [`a reader saw ${followedChangeIds.length} of ${changes.length} changes, or in another order`];
}

/** Ids are 1, 2, 3 and so on, and so are the revisions of each booking. */
function findGaps(changes: readonly ChangeRow[]): string[] {
  const revisions = new Map<string, number>();
  return changes.flatMap((change, index) => {
    const { bookingId } = change;
    const revision = (revisions.get(bookingId) ?? 0) + 1;
    revisions.set(bookingId, revision);
    if (change.id === index + 1 && change.revision === revision) return [];
    return [`change ${change.id} of ${bookingId} has revision ${change.revision}, and is number ${index + 1}`];
  });
}

function mapValues<From, To>(map: Map<string, From>, change: (value: From) => To): Map<string, To> {
  return new Map([...map].map(([name, value]) => [name, change(value)]));
}

function describeState({ state, content, sequence }: ExpectedBooking | BookingRow): string {
  return `${state} by ${sequence}, ${content}`;
}

function describeContent({ state, content }: ExpectedBooking): string {
  return state === "active" ? String(content) : "deleted";
}

/** What somebody knows who reads only the feed. To the feed, a booking that has left `bookings` is a deleted one. */
function followFeed({ changes, log }: Kept, states: Map<string, string>): Map<string, string> {
  const contents = new Map(log.map(({ id, content }) => [id, content]));
  const contentAfter = ({ change, eventId }: ChangeRow) =>
    change === "deleted" ? "deleted" : (contents.get(eventId) ?? "unknown content");
  const known = new Map(changes.map((row) => [nameBooking(row), contentAfter(row)]));
  return new Map([...known].filter(([name, state]) => states.has(name) || state !== "deleted"));
}

function compare(expected: Map<string, string>, found: Map<string, string>): string[] {
  return [...new Set([...expected.keys(), ...found.keys()])]
    .filter((name) => expected.get(name) !== found.get(name))
    .map((name) => `${name} is ${found.get(name) ?? "absent"}, not ${expected.get(name) ?? "absent"}`);
}

function describeLogged(event: LoggedEvent): string {
  return erasedReference.test(event.reference) ? describeErased(event) : describe(event);
}

/** Of an event whose booking has been erased, the log has nothing more: what else it has, shows here. */
function describeErased(event: Post | LoggedEvent): string {
  const { kind, partner } = event;
  const isEmpty = !("content" in event) || (event.content === null && event.idempotencyKey === null);
  return `${kind} ${partner} erased${isEmpty ? "" : ", not emptied"}`;
}

/** Equal events get the same description. */
function describe(event: Post | LoggedEvent): string {
  const { partner, kind, reference, idempotencyKey } = event;
  const content = "content" in event ? event.content : canonicalContent(event.payload);
  return `${kind} ${partner} ${reference} key ${idempotencyKey} ${content}`;
}
