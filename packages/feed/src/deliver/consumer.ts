import { BookingQueues } from "./booking-queues.ts";
import { Breaker } from "./breaker.ts";
import type { SingleConsumer } from "./consumer-options.ts";
import { type DueDelivery, type Progress, recordDone, type WaitingDelivery } from "./deliveries.ts";
import { toAttemptEvent } from "./delivery-event.ts";
import type { ActiveConsumer, Host } from "./host.ts";
import { Intake } from "./intake.ts";
import type { Lease } from "./leases.ts";
import {
  type Addressee,
  type Handing,
  type LookedUp,
  leavesFilter,
  lookUpDelivery,
  remember,
  toDelivery,
} from "./look-up-delivery.ts";
import { Parking } from "./parking.ts";
import { PendingProgress } from "./pending-progress.ts";
import type { Place } from "./place.ts";
import type { Found } from "./read-deliveries.ts";
import { type Outcome, runAttempt } from "./run-attempt.ts";
import { type Task, Turns } from "./turns.ts";

/** After PostgreSQL has failed a handler, or was too slow to tell what the booking holds now. */
const brokenPauseMs = 1_000;

/** Hands the changes of bookings to one consumer: of one booking in order, of several beside each other. */
export class Consumer implements ActiveConsumer {
  readonly name: string;
  readonly token: string;
  readonly #options: SingleConsumer;
  readonly #host: Host;
  readonly #intake: Intake;
  readonly #queues = new BookingQueues();
  readonly #turns: Turns;
  readonly #breaker: Breaker;
  readonly #pending: PendingProgress;
  readonly #parking: Parking;
  readonly #aborting = new AbortController();
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
    this.#turns = new Turns(this.#queues, { isLatest: options.mode === "latest" });
    this.#breaker = new Breaker(options.concurrency, { isOpen: isBreakerOpen });
    this.#pending = new PendingProgress(place);
    const parts = { breaker: this.#breaker, pending: this.#pending, queues: this.#queues, turns: this.#turns };
    this.#parking = new Parking({ ...parts, retry: options.retry });
    if (isBreakerOpen) this.#pause(this.#breaker.probePauseMs);
  }

  wake(): void {
    if (this.#onDrained !== undefined || this.#aborting.signal.aborted) return;
    this.#takeIn();
    for (let task = this.#nextTask(); task !== undefined; task = this.#nextTask()) void this.#run(task);
  }

  offer(due: DueDelivery[]): void {
    if (this.#turns.offer(due)) this.wake();
  }

  takeProgress(): Progress | null {
    const progress = this.#pending.take(this.#intake.place);
    if (progress === null) return null;
    this.hasWaiting ||= progress.rows.some(({ waiting }) => waiting !== null && waiting.pauseMs !== null);
    return { name: this.name, token: this.token, ...progress };
  }

  recorded(): void {
    this.hasSpent = true;
    for (const bookingId of this.#pending.recorded()) {
      if (!this.#turns.isRunning(bookingId)) this.#queues.end(bookingId);
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
    if (this.#turns.running === 0) this.#onDrained?.();
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
    return this.#turns.begin(this.#breaker);
  }

  #wakeIn(pauseMs: number): undefined {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.wake(), pauseMs);
  }

  #pause(pauseMs: number): void {
    this.#pausedUntilMs = Math.max(this.#pausedUntilMs, performance.now() + pauseMs);
  }

  /** Never rejects. */
  async #run(task: Task): Promise<void> {
    try {
      await this.#deliver(task);
    } catch (error) {
      this.#fail(error);
    }
    this.#turns.end(task);
    if (!this.#pending.keeps(task.bookingId)) this.#queues.end(task.bookingId);
    this.#noteDrained();
    this.#host.noteProgress(this, this.#turns.running === 0);
    this.wake();
  }

  #fail(error: unknown): void {
    if (!this.#aborting.signal.aborted) this.#host.stop(this, error as Error);
  }

  async #deliver(task: Task): Promise<void> {
    const lookedUp = await this.#lookUp(task);
    const { decision } = lookedUp;
    this.#aborting.signal.throwIfAborted();
    if (decision.kind === "lost" || performance.now() > this.validUntilMs) return this.#host.lose(this);
    if (decision.kind === "skip") return this.#finish(task, lookedUp, decision.changeId);
    if (decision.kind !== "hand") return task.entry?.finish();
    // Rather late than with a guest who has been erased meanwhile.
    if (performance.now() > lookedUp.staleAtMs) return this.#putBack(task, brokenPauseMs);
    return this.#hand(task, lookedUp, decision);
  }

  #lookUp({ bookingId, changeId, entry }: Task): Promise<LookedUp> {
    const { name, token } = this;
    const { filter, mode } = this.#options;
    const mayWait = this.#turns.running > 1;
    const addressee: Addressee = { name, token, filter, isLatest: mode === "latest", mayWait };
    const place = this.#intake.place.lastId;
    return lookUpDelivery(this.#host, addressee, { bookingId, changeId, isRetry: entry === undefined, place });
  }

  async #hand(task: Task, lookedUp: LookedUp, handing: Handing): Promise<void> {
    const startMs = performance.now();
    const outcome = await this.#attempt(task, lookedUp, handing);
    this.#aborting.signal.throwIfAborted();
    this.#host.observe(toAttemptEvent(this.name, outcome, { startMs, changes: [handing.change] }));
    switch (outcome.kind) {
      case "done":
        if (leavesFilter(lookedUp, handing)) {
          await remember(this.#host, this, new Map([[task.bookingId, "outside"]]));
          this.#aborting.signal.throwIfAborted();
        }
        this.#succeed();
        return this.#finish(task, lookedUp, handing.change.id, outcome.isRecorded);
      case "failed":
      case "timeout":
        return this.#park(task, lookedUp, handing, outcome.failure);
      case "retry-after":
        this.#pending.noteAttempt(false);
        return this.#putBack(task, outcome.pauseMs);
      case "interrupted":
        return this.#putBack(task, brokenPauseMs);
      case "stopped":
        return this.#host.stop(this, outcome.error);
    }
  }

  #attempt(task: Task, { found, hasLeftFeed }: LookedUp, { change, attempt, sinceId }: Handing): Promise<Outcome> {
    const { handle, timeoutMs } = this.#options;
    const { pool, tables } = this.#host;
    const { name, token } = this;
    const { changeId, entry } = task;
    const wanted = { changeId, standsForEarlier: entry?.standsForEarlier ?? false };
    const delivery = toDelivery(name, wanted, { change, attempt, sinceId, hasLeftFeed });
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
    if (!this.#parking.succeed()) return;
    this.#pausedUntilMs = 0;
    this.#host.observe({ type: "breaker-closed", name: this.name });
  }

  /** Everything of the booking up to a change is done. */
  #finish(task: Task, { found }: LookedUp, doneId: number, isRecorded = false): void {
    const { bookingId, entry } = task;
    entry?.finish();
    this.#queues.finishUpTo(bookingId, doneId);
    const waiting = this.#findNext(bookingId, found);
    const isInTurn = entry !== undefined && found.waiting === null && doneId === task.changeId;
    if (isRecorded) {
      if (waiting !== null) this.#host.lookForDue(this);
    } else if (isInTurn) this.#pending.addDone(bookingId, doneId);
    else this.#pending.addRow({ bookingId, doneId, waiting });
  }

  /** Later changes have come behind what waited, and only the feed knows of them. */
  #findNext(bookingId: string, { nextId }: Found): WaitingDelivery | null {
    const hasNext = nextId !== null && nextId <= this.#intake.readUpTo && !this.#queues.has(bookingId, nextId);
    return hasNext ? { changeId: nextId, sinceId: null, attempts: 0, pauseMs: 0, failure: null } : null;
  }

  #park(task: Task, lookedUp: LookedUp, handing: Handing, failure: string): void {
    const { isDead, hasOpenedBreaker, pauseMs } = this.#parking.park(task, lookedUp, handing, failure);
    this.#pause(pauseMs);
    const { name } = this;
    const { bookingId } = task;
    const type = isDead ? "died" : "parked";
    this.#host.observe({ type, name, bookingId, changeId: handing.change.id, failure });
    if (hasOpenedBreaker) this.#host.observe({ type: "breaker-opened", name });
  }

  /** It is tried again, and has lost no attempt. */
  #putBack({ entry }: Task, pauseMs: number): void {
    this.#pause(pauseMs);
    if (entry !== undefined) this.#queues.putBack(entry);
  }
}
