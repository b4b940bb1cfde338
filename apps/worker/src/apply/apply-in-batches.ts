import type { Outcome } from "@booking-events/bookings";
import { countJsonValues, type EventEnvelope, type EventKind, parseEnvelopeText } from "@booking-events/schema";
import { isLockTimeout } from "./apply-events.ts";

/** An event as it came out of the queue. */
export interface QueuedEvent {
  /** JSON of the envelope, not yet parsed. */
  text: string;
  /** The same for events of one booking. Up to its first space, the same for those of one partner. */
  subject: string;
}

export interface AppliedEvent {
  eventId: string;
  partner: string;
  kind: EventKind;
  sequence: number;
  outcome: Outcome;
}

/** No worker of this release can read the event. */
export class InvalidEnvelope extends Error {
  override name = "InvalidEnvelope";
  /** Sentences without any value of the event. */
  readonly problem: string;

  constructor(problem: string) {
    super(problem);
    this.problem = problem;
  }
}

/** Only a worker of a later release can read the event. */
export class LaterVersion extends Error {
  override name = "LaterVersion";
}

/** @throws InvalidEnvelope, LaterVersion */
export function readEnvelope(text: string): EventEnvelope {
  const parsed = parseEnvelopeText(text);
  if (parsed.success) return parsed.envelope;
  throw parsed.isOfLaterVersion ? new LaterVersion(parsed.problem) : new InvalidEnvelope(parsed.problem);
}

export interface BatchLimits {
  maxEvents: number;
  /** Of JSON. An event that is larger is applied alone. */
  maxCharacters: number;
  /** Objects, arrays and scalars: what costs the worker and PostgreSQL most, however short they are. */
  maxJsonValues: number;
  maxConcurrentBatches: number;
  /**
   * A batch that is not full begins no sooner than this after the one before it: events that come one by one share a
   * transaction, which costs them that delay and PostgreSQL much less. Milliseconds.
   */
  minIntervalMs: number;
}

export interface ApplyMode {
  /** The events are of one booking, and no others wait for them. */
  isAlone: boolean;
  /** For a second at most. Else events whose booking is locked have no outcome. */
  waitsForLocks: boolean;
}

interface Waiting extends QueuedEvent {
  partner: string;
  resolve: (applied: AppliedEvent) => void;
  reject: (error: unknown) => void;
}

/** Others had their turns for too long: the event is tried again later. */
class HeldUp extends Error {
  override name = "HeldUp";
}

/** Events that are applied beside the batches. */
interface Group {
  events: Waiting[];
  /** Of `performance.now()`. */
  asideSinceMs: number;
  /** Whether the group, or a larger one that it was part of, has been tried here. */
  isTried: boolean;
  /** The group may wait for locks: its bookings were locked when they were first tried. */
  waitsForLocks: boolean;
  /** How often the group has waited for a lock in vain. */
  lockTimeouts: number;
}

/** Each takes a second (`lockTimeoutMs` of `apply-events.ts`), after which the other groups have their turns. */
const maxLockTimeouts = 5;
/**
 * Events that stand aside take the places of others that wait in the queue. So groups that are not settled by then fail,
 * and come again by the retry policy.
 */
const defaultMaxAsideMs = 5_000;

interface Batch {
  events: Waiting[];
  envelopes: EventEnvelope[];
}

/**
 * Makes a function that applies one event, together with whichever others are at hand: what comes in while batches are
 * being applied, or shortly after one began, makes up the next ones. So an idle worker applies an event at once, and a
 * busy one pays for a transaction once for many events. Only the events of a batch are parsed; those that wait are kept
 * as text.
 *
 * Events of one booking are never in two batches at a time, and keep the order in which they came. Partners take turns:
 * one with many or large events that wait does not keep the others' out of the next batch.
 *
 * A batch that fails, and bookings that can't be applied together with others, stand aside: one such group at a time is
 * applied beside the batches, each in its turn, and halved when it fails. So whatever is wrong with an event costs the
 * others of its batch one transaction, and those of other partners no more. An event fails only after it has failed
 * twice, the second time alone; or together with a group that was not settled in time.
 *
 * @param options.applyBatch applies all of the events or none, and returns the outcome of each by its id. Those that
 *   have none must be applied alone: with others of their booking only, with `isAlone` set
 * @param options.signal aborts when the worker stops: events that wait fail with its reason then, and so does a batch
 *   that fails
 */
export function createBatchApplier(options: {
  applyBatch: (envelopes: EventEnvelope[], how: ApplyMode) => Promise<ReadonlyMap<string, Outcome>>;
  limits: BatchLimits;
  signal: AbortSignal;
  maxAsideMs?: number;
}): (event: QueuedEvent) => Promise<AppliedEvent> {
  const { applyBatch, limits, signal, maxAsideMs = defaultMaxAsideMs } = options;
  let waiting: Waiting[] = [];
  /** Groups that stand aside. */
  const aside: Group[] = [];
  /** How many events of a booking are being applied or stand aside. */
  const busySubjects = new Map<string, number>();
  let batches = 0;
  let isStarting = false;
  let startedAtMs = Number.NEGATIVE_INFINITY;
  let isPausing = false;
  let isApplyingAside = false;

  function startSoon(): void {
    if (isStarting || waiting.length === 0 || batches >= limits.maxConcurrentBatches) return;
    const pauseMs = startedAtMs + limits.minIntervalMs - performance.now();
    if (pauseMs > 0 && waiting.length < limits.maxEvents) {
      if (isPausing) return;
      isPausing = true;
      setTimeout(() => {
        isPausing = false;
        startSoon();
      }, pauseMs);
      return;
    }
    isStarting = true;
    // The queue hands over what came out of Redis in one answer within one turn of the event loop.
    setImmediate(() => {
      isStarting = false;
      const batch = takeBatch();
      // All that wait depend on a batch that is being applied. Its end starts them.
      if (batch.events.length === 0) return;
      startedAtMs = performance.now();
      void runBatch(batch);
      startSoon();
    });
  }

  function takeBatch(): Batch {
    const batch: Batch = { events: [], envelopes: [] };
    const taken = new Set<Waiting>();
    const blocked = new Set<string>();
    const room = { events: limits.maxEvents, characters: limits.maxCharacters, values: limits.maxJsonValues };
    for (const event of inTurns(waiting)) {
      if (room.events === 0) break;
      const mustWait = busySubjects.has(event.subject) || blocked.has(event.subject);
      if (!mustWait && takeInto(batch, event, room)) taken.add(event);
      else blocked.add(event.subject);
    }
    waiting = waiting.filter((event) => !taken.has(event));
    for (const { subject } of batch.events) busySubjects.set(subject, (busySubjects.get(subject) ?? 0) + 1);
    return batch;
  }

  /** @returns false when there is no room for the event, and none for any after it */
  function takeInto(
    batch: Batch,
    event: Waiting,
    room: { events: number; characters: number; values: number },
  ): boolean {
    const isFirst = batch.events.length === 0;
    if (isFirst || event.text.length <= room.characters) {
      const envelope = parse(event);
      if (envelope === undefined) return true;
      const values = countJsonValues(envelope.payload);
      if (isFirst || values <= room.values) {
        batch.events.push(event);
        batch.envelopes.push(envelope);
        room.events -= 1;
        room.characters -= event.text.length;
        room.values -= values;
        return true;
      }
    }
    room.events = 0;
    return false;
  }

  /** @returns undefined when the event can't be read: it has failed then */
  function parse(event: Waiting): EventEnvelope | undefined {
    try {
      return readEnvelope(event.text);
    } catch (error) {
      event.reject(error);
      return undefined;
    }
  }

  async function runBatch(batch: Batch): Promise<void> {
    batches += 1;
    try {
      const left = settle(batch, await applyBatch(batch.envelopes, { isAlone: false, waitsForLocks: false }));
      if (left.length > 0) setAside([toGroup(left, { waitsForLocks: true })]);
    } catch {
      if (signal.aborted) fail(batch.events, signal.reason);
      // It may have been the connection or another transaction, and then it will do the second time.
      else setAside(groupBy(batch.events, ({ partner }) => partner).map((ofPartner) => toGroup(ofPartner)));
    }
    batches -= 1;
    startSoon();
  }

  function setAside(groups: Group[]): void {
    // In front of those that have been tried.
    aside.unshift(...groups);
    if (!isApplyingAside && aside.length > 0) void applyAside();
  }

  async function applyAside(): Promise<void> {
    isApplyingAside = true;
    for (let group = aside.shift(); group !== undefined; group = aside.shift()) {
      if (signal.aborted) fail(group.events, signal.reason);
      else await applyGroup(group);
      startSoon();
    }
    isApplyingAside = false;
  }

  async function applyGroup(group: Group): Promise<void> {
    const { events, lockTimeouts } = group;
    if (group.isTried && performance.now() - group.asideSinceMs > maxAsideMs)
      return fail(events, new HeldUp("The event stood aside for too long."));
    const again = { ...group, isTried: true };
    const envelopes = events.map(parse).filter((envelope) => envelope !== undefined);
    const isAlone = events.every(({ subject }) => subject === events[0]?.subject);
    try {
      const how = { isAlone, waitsForLocks: isAlone || group.waitsForLocks };
      const left = settle({ events, envelopes }, await applyBatch(envelopes, how));
      for (const ofBooking of groupBy(left, subjectOf)) aside.push({ ...again, events: ofBooking });
    } catch (error) {
      if (signal.aborted) return fail(events, signal.reason);
      if (isAlone && isLockTimeout(error)) {
        if (lockTimeouts + 1 >= maxLockTimeouts) return failBooking(events, error);
        aside.push({ ...again, lockTimeouts: lockTimeouts + 1 });
        return;
      }
      if (isLockTimeout(error) && group.waitsForLocks) {
        for (const ofBooking of groupBy(events, subjectOf)) aside.push({ ...again, events: ofBooking });
        return;
      }
      if (events.length === 1) return fail(events, error);
      const middle = Math.ceil(events.length / 2);
      for (const half of [events.slice(0, middle), events.slice(middle)]) aside.push({ ...again, events: half });
    }
  }

  /** @returns the events without an outcome */
  function settle({ events, envelopes }: Batch, outcomes: ReadonlyMap<string, Outcome>): Waiting[] {
    return events.filter((event, index) => {
      const { eventId, partner, kind, sequence } = envelopes[index] as EventEnvelope;
      const outcome = outcomes.get(eventId);
      if (outcome === undefined) return true;
      free(event);
      event.resolve({ eventId, partner, kind, sequence, outcome });
      return false;
    });
  }

  function fail(events: Waiting[], error: unknown): void {
    for (const event of events) {
      free(event);
      event.reject(error);
    }
  }

  /** Somebody keeps the booking locked. Its events would fill the worker if they all waited for that here. */
  function failBooking(events: Waiting[], error: unknown): void {
    const [{ subject }] = events as [Waiting];
    fail(events, error);
    for (const event of waiting) if (event.subject === subject) event.reject(error);
    waiting = waiting.filter((event) => event.subject !== subject);
  }

  function free({ subject }: Waiting): void {
    const others = (busySubjects.get(subject) ?? 0) - 1;
    if (others > 0) busySubjects.set(subject, others);
    else busySubjects.delete(subject);
  }

  function rejectWaiting(): void {
    for (const { reject } of waiting) reject(signal.reason);
    waiting = [];
  }
  signal.addEventListener("abort", rejectWaiting, { once: true });

  return (event) =>
    new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      waiting.push({ ...event, partner: partnerOf(event), resolve, reject });
      startSoon();
    });
}

function toGroup(events: Waiting[], { waitsForLocks = false } = {}): Group {
  return { events, asideSinceMs: performance.now(), isTried: false, waitsForLocks, lockTimeouts: 0 };
}

function groupBy(events: Waiting[], key: (event: Waiting) => string): Waiting[][] {
  return [...Map.groupBy(events, key).values()];
}

function subjectOf({ subject }: Waiting): string {
  return subject;
}

function partnerOf({ subject }: QueuedEvent): string {
  return subject.split(" ", 1)[0] ?? "";
}

/** One event of each partner after the other, each partner's in the order in which they came. */
function* inTurns(events: Waiting[]): Generator<Waiting> {
  let partners = groupBy(events, ({ partner }) => partner);
  for (let turn = 0; partners.length > 0; turn += 1) {
    partners = partners.filter((ofPartner) => turn < ofPartner.length);
    for (const ofPartner of partners) yield ofPartner[turn] as Waiting;
  }
}
