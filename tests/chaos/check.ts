import type { EventKind } from "@booking-events/schema";
import { canonicalContent } from "./canonical-content.ts";
import { type ExpectedBooking, expectBookings, nameBooking } from "./oracle.ts";
import type { Attempt } from "./post-histories.ts";
import type { ChangeRow, DatabaseContent, LoggedEvent } from "./read-database.ts";

/** Each is a promise broken:
 * - `lost`: acknowledged, and not in the log
 * - `unexpected`: in the log, and nobody has sent it, or not like this; or an answer that no partner should get
 * - `out of order`: sent after the other was acknowledged, and in the log before it
 * - `overtaken`: given up by its sender, who then sent a newer one for its booking, which was acknowledged; and received
 *   after that all the same
 * - `wrong state`: a booking that is not what the events in the log make it
 * - `wrong feed`: whoever follows `booking_changes` ends with another state, or misses a change
 * - `dead`: a dead letter, of events that are all good
 * - `attempt lost`: an event has an attempt less because of an outage
 * - `crashed`: a process ended by itself, or did not become ready again
 * - `stuck`: the queue did not become empty
 */
export const violationKinds = [
  "lost",
  "unexpected",
  "out of order",
  "overtaken",
  "wrong state",
  "wrong feed",
  "dead",
  "attempt lost",
  "crashed",
  "stuck",
] as const;
export type ViolationKind = (typeof violationKinds)[number];

export interface Violation {
  kind: ViolationKind;
  what: string;
}

/** What a partner has told us, and how that went. */
export interface Post {
  partner: string;
  kind: EventKind;
  reference: string;
  payload: object;
  idempotencyKey: string | null;
  attempts: readonly Attempt[];
}

/** What was seen from outside. */
export interface Evidence {
  posts: readonly Post[];
  database: DatabaseContent;
  /** Read during the run, by one who asks for what comes after the last id. */
  followedChangeIds: readonly number[];
  duplicateWindowMs: number;
}

export interface Tally {
  attempted: number;
  /** Posts sent again count again. */
  requests: number;
  acknowledged: number;
  /** Never acknowledged, whatever the retries. */
  givenUp: number;
  applied: number;
  /** Of the applied: their acknowledgement never arrived. A retry may have brought the event a second time. */
  unacknowledged: number;
  /** Of the applied: recorded as repetitions of another. */
  duplicated: number;
  /** Of the applied: arrived after a later one had been applied. */
  superseded: number;
  bookings: number;
  changes: number;
}

/** Compares what partners were told with what stands in PostgreSQL, and that with the oracle. */
export function check(evidence: Evidence): { tally: Tally; violations: Violation[] } {
  const { posts, database } = evidence;
  const acknowledged = posts.flatMap(toAcknowledged);
  const logged = new Map(database.log.map((event) => [event.id, event]));
  const receipts = new Set(acknowledged.map(({ eventId }) => eventId));
  const unacknowledged = database.log.filter(({ id }) => !receipts.has(id));
  const withOutcome = (outcome: string) => database.log.filter((event) => event.outcome === outcome).length;

  return {
    tally: {
      attempted: posts.length,
      requests: posts.reduce((sum, { attempts }) => sum + attempts.length, 0),
      acknowledged: acknowledged.length,
      givenUp: posts.length - acknowledged.length,
      applied: database.log.length,
      unacknowledged: unacknowledged.length,
      duplicated: withOutcome("duplicate"),
      superseded: withOutcome("superseded"),
      bookings: database.bookings.length,
      changes: database.changes.length,
    },
    violations: [
      ...findLost(acknowledged, logged),
      ...findUnexpectedAnswers(posts),
      ...findUnexpectedReceipts(acknowledged),
      ...findAltered(acknowledged, logged),
      ...findUnexplained(posts, unacknowledged),
      ...findOutOfOrder(acknowledged, logged),
      ...findOvertaken(posts, acknowledged, database.log),
      ...findWrongStates(evidence),
      ...database.deadLetters.map(({ eventId, errorCode }) => violation("dead", `${eventId}: ${errorCode}`)),
    ],
  };
}

interface Acknowledged {
  eventId: string;
  post: Post;
  /** Of the request that was acknowledged. */
  sentAtMs: number;
  acknowledgedAtMs: number;
}

function toAcknowledged(post: Post): Acknowledged[] {
  return post.attempts.flatMap(({ sentAtMs, endedAtMs, end }) =>
    end.result === "acknowledged" ? [{ eventId: end.eventId, post, sentAtMs, acknowledgedAtMs: endedAtMs }] : [],
  );
}

function findLost(acknowledged: Acknowledged[], logged: Map<string, LoggedEvent>): Violation[] {
  return acknowledged
    .filter(({ eventId }) => !logged.has(eventId))
    .map(({ eventId, post }) => violation("lost", `${eventId}: ${describe(post)}`));
}

function findUnexpectedAnswers(posts: readonly Post[]): Violation[] {
  return posts.flatMap((post) =>
    post.attempts.flatMap(({ end }) =>
      end.result === "unexpected" ? [violation("unexpected", `${end.what} to ${describe(post)}`)] : [],
    ),
  );
}

function findUnexpectedReceipts(acknowledged: Acknowledged[]): Violation[] {
  return [...Map.groupBy(acknowledged, ({ eventId }) => eventId)]
    .filter(([, same]) => same.length > 1)
    .map(([eventId, same]) => violation("unexpected", `${eventId} was the receipt of ${same.length} posts`));
}

function findAltered(acknowledged: Acknowledged[], logged: Map<string, LoggedEvent>): Violation[] {
  return acknowledged.flatMap(({ eventId, post }) => {
    const event = logged.get(eventId);
    if (event === undefined || describe(event) === describe(post)) return [];
    return [violation("unexpected", `${eventId} is ${describe(event)} in the log, and was ${describe(post)}`)];
  });
}

/**
 * A request without an acknowledgement may have been queued or not. So there may be as many events in the log as there
 * were such requests that look the same, and not one more.
 */
function findUnexplained(posts: readonly Post[], unacknowledged: LoggedEvent[]): Violation[] {
  const possible = new Map<string, number>();
  for (const post of posts) {
    const name = describe(post);
    possible.set(name, (possible.get(name) ?? 0) + post.attempts.filter(mayHaveBeenQueued).length);
  }
  return [...Map.groupBy(unacknowledged, describe)].flatMap(([name, events]) => {
    const explained = possible.get(name) ?? 0;
    return events.slice(explained).map(({ id }) => violation("unexpected", `${id}: nobody has sent this ${name}`));
  });
}

function mayHaveBeenQueued({ end }: Attempt): boolean {
  return end.result !== "acknowledged" && end.result !== "unreachable";
}

/** Whoever waits for the answer before sending the next event relies on it that they take effect in this order. */
function findOutOfOrder(acknowledged: Acknowledged[], logged: Map<string, LoggedEvent>): Violation[] {
  const events = acknowledged.flatMap((one) => {
    const sequence = logged.get(one.eventId)?.sequence;
    return sequence === undefined ? [] : [{ ...one, sequence }];
  });
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
      return [
        violation(
          "out of order",
          `${event.eventId} (${event.sequence}) was sent after ${latest.eventId} (${latest.sequence}) had been acknowledged`,
        ),
      ];
    });
}

/**
 * The log alone can't tell: it has the events in the order in which they were received, and that is what is wrong. So
 * the times are the senders', and of when an event was received we know this: after all that stand before it were sent.
 */
function findOvertaken(posts: readonly Post[], acknowledged: Acknowledged[], log: readonly LoggedEvent[]): Violation[] {
  const receipts = new Map(acknowledged.map((one) => [one.eventId, one]));
  const attemptsByName = Map.groupBy(posts, describe);
  const acknowledgedByBooking = Map.groupBy(acknowledged, ({ post }) => nameBooking(post));
  let receivedAfterMs = Number.NEGATIVE_INFINITY;
  const unacknowledged: Late[] = [];
  for (const event of log.toSorted((a, b) => a.sequence - b.sequence)) {
    const receipt = receipts.get(event.id);
    if (receipt !== undefined) {
      receivedAfterMs = Math.max(receivedAfterMs, receipt.sentAtMs);
      continue;
    }
    const name = describe(event);
    const newer = (acknowledgedByBooking.get(nameBooking(event)) ?? []).filter(
      ({ post, acknowledgedAtMs }) => acknowledgedAtMs < receivedAfterMs && describe(post) !== name,
    );
    unacknowledged.push({ event, name, newerSentAtMs: Math.max(...newer.map(({ sentAtMs }) => sentAtMs)) });
  }
  return [...Map.groupBy(unacknowledged, ({ name }) => name)].flatMap(([name, events]) => {
    const attempts = (attemptsByName.get(name) ?? []).flatMap((post) => post.attempts.filter(mayHaveBeenQueued));
    return findLate(events, attempts).map(({ event, newerSentAtMs }) =>
      violation(
        "overtaken",
        `${event.id} (${event.sequence}), ${name}, was given up before another was sent at ${newerSentAtMs}, which was acknowledged before this one was received`,
      ),
    );
  });
}

interface Late {
  event: LoggedEvent;
  name: string;
  /** When the last newer event of its booking was sent that was acknowledged before this one was received. */
  newerSentAtMs: number;
}

/**
 * Any of the attempts may have brought any of the events. They are matched in the senders' favour: an event is all
 * right if there is an attempt for it that was not given up yet when the newer event was sent.
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

function findWrongStates({ database, followedChangeIds, duplicateWindowMs }: Evidence): Violation[] {
  const { bookings, keyRepeats, keyReuses } = expectBookings(database.log, duplicateWindowMs);
  const outcomes = new Map(database.log.map(({ id, outcome }) => [id, outcome]));
  const uncounted = [...keyRepeats].filter((id) => outcomes.get(id) !== "duplicate");
  const wronglyWarned = database.log.filter(
    ({ id, warnings }) => keyReuses.has(id) !== warnings.includes("key-reused"),
  );
  const states = new Map(
    database.bookings.map((row) => [nameBooking(row), describeState(row.state, row.content, row.sequence)]),
  );
  const contents = new Map(database.log.map(({ id, content }) => [id, content]));
  const changeIds = database.changes.map(({ id }) => id);

  return [
    ...uncounted.map((id) => violation("wrong state", `${id} repeats a key and is recorded as ${outcomes.get(id)}`)),
    ...wronglyWarned.map(({ id, warnings }) =>
      violation("wrong state", `${id} is recorded with the warnings [${warnings}], which is wrong of its key`),
    ),
    ...compare("wrong state", expectedStates(bookings), states),
    ...compare("wrong feed", expectedContents(bookings), followFeed(database.changes, contents, states)),
    ...(changeIds.join() === followedChangeIds.join()
      ? []
      : [
          violation(
            "wrong feed",
            `a reader saw ${followedChangeIds.length} of ${changeIds.length} changes, or in another order`,
          ),
        ]),
  ];
}

function expectedStates(bookings: Map<string, ExpectedBooking>): Map<string, string> {
  return new Map(
    [...bookings].map(([name, { state, content, sequence }]) => [name, describeState(state, content, sequence)]),
  );
}

function expectedContents(bookings: Map<string, ExpectedBooking>): Map<string, string> {
  return new Map(
    [...bookings].map(([name, { state, content }]) => [name, state === "active" ? String(content) : "deleted"]),
  );
}

function describeState(state: string, content: string | null, sequence: number): string {
  return `${state} by ${sequence}, ${content}`;
}

/** What one knows who reads only the feed. A booking that has left `bookings` is a deleted one to the feed. */
function followFeed(
  changes: ChangeRow[],
  contents: Map<string, string>,
  states: Map<string, string>,
): Map<string, string> {
  const known = new Map<string, string>();
  for (const row of changes) {
    known.set(
      nameBooking(row),
      row.change === "deleted" ? "deleted" : (contents.get(row.eventId) ?? "unknown content"),
    );
  }
  return new Map([...known].filter(([name, state]) => states.has(name) || state !== "deleted"));
}

function compare(kind: ViolationKind, expected: Map<string, string>, found: Map<string, string>): Violation[] {
  return [...new Set([...expected.keys(), ...found.keys()])]
    .filter((name) => expected.get(name) !== found.get(name))
    .map((name) => violation(kind, `${name} is ${found.get(name) ?? "absent"}, not ${expected.get(name) ?? "absent"}`));
}

/** Two posts that look the same get the same description. */
function describe(event: Post | LoggedEvent): string {
  const { partner, kind, reference, idempotencyKey } = event;
  const content = "content" in event ? event.content : canonicalContent(event.payload);
  return `${kind} ${partner} ${reference} key ${idempotencyKey} ${content}`;
}

function violation(kind: ViolationKind, what: string): Violation {
  return { kind, what };
}
