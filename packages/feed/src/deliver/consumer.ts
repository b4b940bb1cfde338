import type { BookingChange } from "../read-changes.ts";
import { pauseAfter } from "./back-off.ts";
import { BookingQueues } from "./booking-queues.ts";
import { Breaker } from "./breaker.ts";
import { changedFields } from "./changed-fields.ts";
import type { SingleConsumer } from "./consumer-options.ts";
import { type Decision, decide } from "./decide.ts";
import { type DeliveryRow, type DueDelivery, type Progress, recordDone, type WaitingDelivery } from "./deliveries.ts";
import type { Delivery } from "./delivery.ts";
import type { ActiveConsumer, Host } from "./host.ts";
import { type Entry, Intake } from "./intake.ts";
import type { Lease } from "./leases.ts";
import { PendingProgress } from "./pending-progress.ts";
import type { Place } from "./place.ts";
import { readBooking } from "./read-booking.ts";
import type { Found } from "./read-deliveries.ts";
import { recordHanded } from "./record-handed.ts";
import { type Outcome, runAttempt } from "./run-attempt.ts";

/** A booking whose turn it is. */
interface Task {
  bookingId: string;
  changeId: number | null;
  /** Undefined: it waited in feed_deliveries. */
  entry?: Entry;
  isProbe: boolean;
}

interface Decided {
  found: Found;
  decision: Decision;
  /** The feed has no change of the booking any more. */
  hasLeftFeed: boolean;
}

type Handing = Extract<Decision, { kind: "hand" }>;

/** What was read may be handed over for so long, unless it can't be read faster. */
const freshMs = 1_000;
const maxReads = 3;
/** After PostgreSQL has failed a handler. */
const brokenPauseMs = 1_000;

/** Hands the changes of bookings to one consumer: of one booking in order, of several beside each other. */
export class Consumer implements ActiveConsumer {
  readonly name: string;
  readonly token: string;
  readonly #options: SingleConsumer;
  readonly #host: Host;
  readonly #intake: Intake;
  readonly #queues = new BookingQueues();
  readonly #breaker: Breaker;
  readonly #pending: PendingProgress;
  readonly #aborting = new AbortController();
  /** Deliveries that wait for another attempt and are due, by booking, in the order of their ids. */
  #due: DueDelivery[] = [];
  /** Bookings whose attempts are under way, and how many of them are of deliveries that waited. */
  readonly #running = new Set<string>();
  #retries = 0;
  #prefersRetry = false;
  /** What may have failed because the consumer was down, by booking. */
  #inARow = new Map<string, DeliveryRow & { waiting: WaitingDelivery }>();
  /** Nothing begins before, by `performance.now()`. */
  #pausedUntilMs = 0;
  #timer: NodeJS.Timeout | undefined;
  /** Called when nothing is under way, once nothing more may begin. */
  #onDrained: (() => void) | undefined;
  hasWaiting = true;
  hasSpent = true;
  validUntilMs: number;

  constructor(
    options: SingleConsumer,
    { token, validUntilMs, place, isBreakerOpen }: Lease & { place: Place },
    host: Host,
  ) {
    this.name = options.name;
    this.token = token;
    this.validUntilMs = validUntilMs;
    this.#options = options;
    this.#host = host;
    this.#intake = new Intake({ ...options, ...host, place });
    this.#breaker = new Breaker(options.concurrency, { isOpen: isBreakerOpen });
    this.#pending = new PendingProgress(place);
    if (isBreakerOpen) this.#pause(this.#breaker.probePauseMs);
  }

  wake(): void {
    if (this.#onDrained !== undefined || this.#aborting.signal.aborted) return;
    this.#takeIn();
    for (let task = this.#nextTask(); task !== undefined; task = this.#nextTask()) void this.#run(task);
  }

  offer(due: DueDelivery[]): void {
    const known = new Set(this.#due.map(({ bookingId }) => bookingId));
    const fresh = due.filter(({ bookingId }) => !known.has(bookingId) && !this.#queues.isBusy(bookingId));
    if (fresh.length === 0) return;
    this.#due = [...this.#due, ...fresh].sort((one, other) => one.changeId - other.changeId);
    this.wake();
  }

  takeProgress(): Progress | null {
    const progress = this.#pending.take(this.#intake.place);
    if (progress === null) return null;
    this.hasWaiting ||= progress.rows.some(({ waiting }) => waiting !== null && waiting.pauseMs !== null);
    this.hasSpent ||= progress.rows.length > 0;
    return { name: this.name, token: this.token, ...progress };
  }

  recorded(): void {
    for (const bookingId of this.#pending.recorded()) {
      if (!this.#running.has(bookingId)) this.#queues.end(bookingId);
    }
    this.wake();
  }

  drain(): Promise<void> {
    clearTimeout(this.#timer);
    return new Promise((resolve) => {
      this.#onDrained = resolve;
      this.#noteDrained();
    });
  }

  abort(): void {
    clearTimeout(this.#timer);
    this.#aborting.abort(new Error("Another process delivers, or this one stops."));
    this.#onDrained?.();
  }

  #noteDrained(): void {
    if (this.#running.size === 0) this.#onDrained?.();
  }

  #takeIn(): void {
    const reading = this.#intake.take((entries) => {
      for (const entry of entries) this.#queues.add(entry);
    });
    reading?.then(
      () => this.wake(),
      (error) => this.#fail(error),
    );
  }

  #nextTask(): Task | undefined {
    const pauseMs = this.#pausedUntilMs - performance.now();
    if (pauseMs > 0) return this.#wakeIn(pauseMs);
    if (this.#running.size >= this.#breaker.limit) return undefined;
    if (this.#breaker.isOpen) return this.#nextProbe();
    // Retries may hang: half of the slots are for what has not failed.
    const mayRetry = this.#retries < Math.ceil(this.#breaker.limit / 2);
    this.#prefersRetry = !this.#prefersRetry;
    const retry = mayRetry && this.#prefersRetry ? this.#nextRetry() : undefined;
    return retry ?? this.#nextEntry() ?? (mayRetry ? this.#nextRetry() : undefined);
  }

  /**
   * First the lowest booking that has failed. Most of the others have not been tried before, in case that those that have
   * failed are themselves at fault.
   */
  #nextProbe(): Task | undefined {
    const { probes } = this.#breaker;
    const index = Math.floor(probes / 4) % Math.max(this.#due.length, 1);
    const first = probes % 4 === 0 ? this.#nextRetry(index) : undefined;
    const task = first ?? this.#nextEntry() ?? this.#nextRetry(index);
    return task && { ...task, isProbe: true };
  }

  #wakeIn(pauseMs: number): undefined {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.wake(), pauseMs);
  }

  #pause(pauseMs: number): void {
    this.#pausedUntilMs = Math.max(this.#pausedUntilMs, performance.now() + pauseMs);
  }

  #nextRetry(index = 0): Task | undefined {
    const [next] = this.#due.splice(index, 1);
    if (next === undefined) return undefined;
    if (this.#queues.isBusy(next.bookingId)) return this.#nextRetry();
    this.#queues.begin(next.bookingId);
    return { bookingId: next.bookingId, changeId: next.changeId, isProbe: false };
  }

  #nextEntry(): Task | undefined {
    const next = this.#queues.next();
    if (next === undefined) return undefined;
    const entry = this.#options.mode === "latest" ? this.#queues.skipOverridden(next) : next;
    return { bookingId: entry.bookingId, changeId: entry.changeId, entry, isProbe: false };
  }

  /** Never rejects. */
  async #run(task: Task): Promise<void> {
    const isRetry = task.entry === undefined;
    this.#running.add(task.bookingId);
    if (isRetry) this.#retries += 1;
    try {
      await this.#deliver(task);
    } catch (error) {
      this.#fail(error);
    }
    this.#running.delete(task.bookingId);
    if (isRetry) this.#retries -= 1;
    if (!this.#pending.keeps(task.bookingId)) this.#queues.end(task.bookingId);
    this.#noteDrained();
    this.#host.noteProgress(this, this.#running.size === 0);
    this.wake();
  }

  #fail(error: unknown): void {
    if (!this.#aborting.signal.aborted) this.#host.stop(this, error as Error);
  }

  async #deliver(task: Task): Promise<void> {
    const decided = await this.#decide(task);
    const { decision } = decided;
    this.#aborting.signal.throwIfAborted();
    if (decision.kind === "lost" || performance.now() > this.validUntilMs) {
      return this.#host.lose(this);
    }
    if (decision.kind === "hand") return this.#hand(task, decided, decision);
    if (decision.kind === "skip") return this.#finish(task, decided, decision.changeId);
    task.entry?.finish();
  }

  async #decide(task: Task): Promise<Decided> {
    const { name, filter, mode } = this.#options;
    const isLatest = mode === "latest";
    const { bookingId, changeId, entry } = task;
    for (let reads = 1; ; reads += 1) {
      const startMs = performance.now();
      const found = await this.#host.find({ name, token: this.token, bookingId, changeId, isLatest });
      const hasLeftFeed = found.change === null;
      found.change ??= await this.#readGone(task, found);
      const decision = decide({ changeId, isRetry: entry === undefined, filter, isLatest }, found);
      if (decision.kind === "hand" && decision.handed !== null)
        await this.#remember(bookingId, decision.handed === "inside");
      if (performance.now() - startMs < freshMs || reads === maxReads) return { found, decision, hasLeftFeed };
    }
  }

  /** The feed has no change of the booking any more. */
  #readGone({ bookingId, changeId }: Task, { isHeld }: Found): Promise<BookingChange | null> {
    const { read, tables } = this.#host;
    const asId = changeId ?? this.#intake.place.lastId;
    return isHeld ? read((client) => readBooking(client, tables, { bookingId, asId })) : Promise.resolve(null);
  }

  #remember(bookingId: string, isInside: boolean): Promise<void> {
    const { read, tables } = this.#host;
    const { name, token } = this;
    return read((client) => recordHanded(client, tables, { name, token, bookingId, isInside }));
  }

  async #hand(task: Task, decided: Decided, handing: Handing): Promise<void> {
    const startMs = performance.now();
    const outcome = await this.#attempt(task, decided, handing);
    this.#aborting.signal.throwIfAborted();
    this.#observe(outcome, handing.change, startMs);
    switch (outcome.kind) {
      case "done":
        this.#succeed();
        return this.#finish(task, decided, handing.change.id, outcome.isRecorded);
      case "failed":
      case "timeout":
        return this.#park(task, decided, handing, outcome.failure);
      case "retry-after":
        this.#pending.noteAttempt(false);
        return this.#putBack(task, outcome.pauseMs);
      case "interrupted":
        return this.#putBack(task, brokenPauseMs);
      case "stopped":
        return this.#host.stop(this, outcome.error);
    }
  }

  #attempt(task: Task, { found, hasLeftFeed }: Decided, { change, attempt, sinceId }: Handing): Promise<Outcome> {
    const { handle, timeoutMs } = this.#options;
    const { pool, tables } = this.#host;
    const { name, token } = this;
    const isOther = change.id !== task.changeId;
    const standsForEarlier = (task.entry?.standsForEarlier ?? false) || isOther || hasLeftFeed || sinceId !== null;
    const delivery: Delivery = {
      change,
      // The id of what has left the feed is not its own.
      key: `${this.name}-${hasLeftFeed ? `${change.bookingId}-${change.revision}` : change.id}`,
      attempt,
      changedFields: standsForEarlier ? null : changedFields(change),
      standsForEarlier,
    };
    return runAttempt((context) => handle(delivery, context), {
      pool,
      timeoutMs,
      signal: this.#aborting.signal,
      record: (client) => {
        const { bookingId } = task;
        const doneId = Math.max(change.id, found.doneId ?? 0);
        const row = { bookingId, doneId, waiting: this.#findNext(bookingId, found) };
        return recordDone(client, tables, { name, token, row });
      },
    });
  }

  #succeed(): void {
    this.#inARow.clear();
    this.#pending.noteAttempt(true);
    if (this.#breaker.succeed() === "stays") return;
    this.#pausedUntilMs = 0;
    this.#pending.noteBreaker({ isOpen: false, probeInMs: 0 });
    this.#host.observe({ type: "breaker-closed", name: this.name });
  }

  /** Everything of the booking up to a change is done. */
  #finish(task: Task, { found }: Decided, doneId: number, isRecorded = false): void {
    const { bookingId, entry } = task;
    entry?.finish();
    this.#queues.finishUpTo(bookingId, doneId);
    const waiting = this.#findNext(bookingId, found);
    const isInTurn = entry !== undefined && found.waiting === null && doneId === task.changeId;
    if (isRecorded) {
      this.hasSpent = true;
      if (waiting !== null) this.#host.lookForDue(this);
    } else if (isInTurn) this.#pending.addDone(bookingId, doneId);
    else this.#pending.addRow({ bookingId, doneId, waiting });
  }

  /** Later changes have come behind what waited, and only the feed knows of them. */
  #findNext(bookingId: string, { nextId }: Found): WaitingDelivery | null {
    const hasNext = nextId !== null && nextId <= this.#intake.readUpTo && !this.#queues.has(bookingId, nextId);
    return hasNext ? { changeId: nextId, sinceId: null, attempts: 0, pauseMs: 0, failure: null } : null;
  }

  /** The booking waits for another attempt, and everything else of it waits behind. */
  #park(task: Task, { found }: Decided, { change, attempt, sinceId }: Handing, failure: string): void {
    const { bookingId, isProbe } = task;
    const hasFailedBefore = found.waiting !== null;
    this.#pending.noteAttempt(false);
    const cost = this.#breaker.fail({ isProbe, hasFailedBefore });
    const attempts = cost === "counts" ? attempt : attempt - 1;
    const pauseMs = cost === "counts" ? pauseAfter(attempts, this.#options.retry, Math.random()) : 0;
    const waiting = { changeId: change.id, sinceId, attempts, pauseMs, failure };
    const row = { bookingId, doneId: found.doneId, waiting };
    this.#pending.addRow(row);
    task.entry?.finish();
    const type = pauseMs === null ? "died" : "parked";
    this.#host.observe({ type, name: this.name, bookingId, changeId: change.id, failure });
    if (cost === "counts" && (!hasFailedBefore || this.#inARow.has(bookingId))) this.#inARow.set(bookingId, row);
    if (cost === "opens") this.#open();
    else if (isProbe) this.#waitForProbe();
  }

  /** Gives back the attempts that were lost because the consumer was down. */
  #open(): void {
    for (const row of this.#inARow.values()) {
      const { bookingId, waiting } = row;
      const isTriedAgain = this.#running.has(bookingId) && !this.#pending.keeps(bookingId);
      if (isTriedAgain) continue;
      if (!this.#queues.isBusy(bookingId)) this.#queues.begin(bookingId);
      this.#pending.addRow({ ...row, waiting: { ...waiting, attempts: waiting.attempts - 1, pauseMs: 0 } });
    }
    this.#inARow.clear();
    this.#waitForProbe();
    this.#host.observe({ type: "breaker-opened", name: this.name });
  }

  #waitForProbe(): void {
    const { probePauseMs } = this.#breaker;
    this.#pause(probePauseMs);
    this.#pending.noteBreaker({ isOpen: true, probeInMs: probePauseMs });
  }

  /** It is tried again, and has lost no attempt. */
  #putBack({ entry }: Task, pauseMs: number): void {
    this.#pause(pauseMs);
    if (entry !== undefined) this.#queues.putBack(entry);
  }

  #observe(outcome: Outcome, { changedAt }: BookingChange, startMs: number): void {
    const failure = outcome.kind === "failed" || outcome.kind === "timeout" ? outcome.failure : null;
    this.#host.observe({
      type: "attempt",
      name: this.name,
      outcome: outcome.kind,
      failure,
      durationMs: performance.now() - startMs,
      sinceChangeMs: Date.now() - changedAt.getTime(),
      deliveries: 1,
    });
  }
}
