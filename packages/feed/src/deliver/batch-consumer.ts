import { growingPauseMs } from "../pauses.ts";
import type { BatchConsumer as Options } from "./consumer-options.ts";
import { decide } from "./decide.ts";
import { type DeliveryRow, type Progress, recordProgress } from "./deliveries.ts";
import type { Delivery } from "./delivery.ts";
import { toAttemptEvent } from "./delivery-event.ts";
import type { Handed } from "./filter.ts";
import type { ActiveConsumer, Host } from "./host.ts";
import { type Entry, Intake, isOld } from "./intake.ts";
import type { Lease } from "./leases.ts";
import { type FoundDelivery, findDelivery, type Handing, remember, toDelivery } from "./look-up-delivery.ts";
import { PendingProgress } from "./pending-progress.ts";
import type { Place } from "./place.ts";
import { type Outcome, runAttempt } from "./run-attempt.ts";

const longestPauseMs = 60_000;
const slowPauseMs = 1_000;

interface FoundEntry extends FoundDelivery {
  entry: Entry;
}

interface Ready {
  delivery: Delivery;
  row: DeliveryRow | undefined;
  /** See `LookedUp`. */
  staleAtMs: number;
}

/** Deliveries of a batch, and what there is to record once all are done. */
interface Batch {
  deliveries: Delivery[];
  place: Place;
  rows: DeliveryRow[];
  /** Bookings that have left the filter. */
  left: ReadonlyMap<string, Handed>;
  staleAtMs: number;
}

/** Hands the changes of the feed to one consumer in batches, one after the other, in order. */
export class BatchConsumer implements ActiveConsumer {
  readonly name: string;
  readonly token: string;
  validUntilMs: number;
  /** Nothing waits here but the next batch. */
  hasWaiting = false;
  hasSpent = true;
  readonly #options: Options;
  readonly #host: Host;
  readonly #intake: Intake;
  readonly #pending: PendingProgress;
  readonly #aborting = new AbortController();
  #entries: Entry[] = [];
  #running: Promise<void> | undefined;
  #isDraining = false;
  /** Of the next batch. */
  #failures = 0;
  #size: number;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: Options, { token, validUntilMs, place }: Lease & { place: Place }, host: Host) {
    this.name = options.name;
    this.token = token;
    this.validUntilMs = validUntilMs;
    this.#options = options;
    this.#size = options.batchSize;
    this.#host = host;
    this.#intake = new Intake({ ...options, ...host, place });
    this.#pending = new PendingProgress(place);
  }

  wake(): void {
    if (this.#isDraining || this.#aborting.signal.aborted || this.#timer !== undefined) return;
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
    });
  }

  /** Nothing ever is. */
  offer(): void {}

  takeProgress(): Progress | null {
    const progress = this.#pending.take(this.#intake.place);
    if (progress === null) return null;
    return { name: this.name, token: this.token, ...progress };
  }

  recorded(): void {
    this.hasSpent = true;
    this.#pending.recorded();
  }

  async drain(): Promise<void> {
    this.#isDraining = true;
    clearTimeout(this.#timer);
    await this.#running;
  }

  abort(): void {
    clearTimeout(this.#timer);
    this.#aborting.abort(new Error("Another process delivers, or this one stops."));
  }

  /** Never rejects. */
  async #run(): Promise<void> {
    try {
      while (!this.#isDraining && (await this.#takeIn())) {
        const isDone = await this.#deliver();
        this.#host.noteProgress(this, true);
        if (!isDone) return;
      }
    } catch (error) {
      if (!this.#aborting.signal.aborted) this.#host.stop(this, error as Error);
    }
  }

  /** @returns whether there is something to do */
  async #takeIn(): Promise<boolean> {
    await this.#intake.take((entries) => this.#entries.push(...entries));
    return this.#entries.length > 0;
  }

  /** @returns whether to go on with the next batch */
  async #deliver(): Promise<boolean> {
    const entries = this.#entries.slice(0, this.#size);
    const batch = await this.#prepare(entries);
    this.#aborting.signal.throwIfAborted();
    if (batch === undefined || performance.now() > this.validUntilMs) {
      this.#host.lose(this);
      return false;
    }
    if (batch.deliveries.length === 0) return this.#finish(entries, batch, true);
    const startMs = performance.now();
    if (startMs > batch.staleAtMs) return this.#readLess();
    const outcome = await this.#attempt(batch);
    if (outcome.kind === "done") await remember(this.#host, this, batch.left);
    this.#aborting.signal.throwIfAborted();
    const changes = batch.deliveries.map(({ change }) => change);
    this.#host.observe(toAttemptEvent(this.name, outcome, { startMs, changes }));
    return this.#settle(entries, batch, outcome);
  }

  #settle(entries: Entry[], batch: Batch, outcome: Outcome): boolean {
    switch (outcome.kind) {
      case "done":
        this.#failures = 0;
        this.#size = Math.min(2 * this.#size, this.#options.batchSize);
        this.#pending.noteAttempt(true);
        return this.#finish(entries, batch, outcome.isRecorded);
      case "failed":
      case "timeout":
      case "interrupted":
        this.#failures += 1;
        if (outcome.kind !== "interrupted") this.#pending.noteAttempt(false);
        return this.#pause(growingPauseMs(this.#failures, longestPauseMs));
      case "retry-after":
        this.#pending.noteAttempt(false);
        return this.#pause(outcome.pauseMs);
      case "stopped":
        this.#host.stop(this, outcome.error);
        return false;
    }
  }

  #finish(entries: Entry[], { rows }: Batch, isRecorded: boolean): boolean {
    for (const { finish } of entries) finish();
    this.#entries.splice(0, entries.length);
    if (!isRecorded) for (const row of rows) this.#pending.addRow(row);
    return true;
  }

  /** PostgreSQL was too slow to tell what all of these bookings hold now. */
  #readLess(): false {
    this.#size = Math.ceil(this.#size / 2);
    return this.#pause(slowPauseMs);
  }

  #pause(pauseMs: number): false {
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.wake();
    }, pauseMs);
    return false;
  }

  /** @returns undefined: another process has the lease */
  async #prepare(entries: Entry[]): Promise<Batch | undefined> {
    const found = await Promise.all(this.#withoutOverridden(entries).map((entry) => this.#find(entry)));
    if (found.some(({ found: { isHeld } }) => !isHeld)) return undefined;
    const { ready, learned, left } = this.#choose(found);
    await remember(this.#host, this, learned);
    // An erasure takes the place of everything else of its booking.
    const byChange = new Map(ready.map((one) => [one.delivery.key, one]));
    return {
      deliveries: [...byChange.values()].map(({ delivery }) => delivery),
      place: entries.at(-1)?.place ?? this.#intake.place,
      rows: [...byChange.values()].flatMap(({ row }) => row ?? []),
      left,
      staleAtMs: Math.min(...ready.map(({ staleAtMs }) => staleAtMs)),
    };
  }

  /** @returns `learned`: what is to be remembered before the batch is handed over; `left`: once it is done */
  #choose(found: FoundEntry[]): { ready: Ready[]; learned: Map<string, Handed>; left: Map<string, Handed> } {
    const { mode, filter } = this.#options;
    const ready: Ready[] = [];
    const learned = new Map<string, Handed>();
    // What the consumer knows by then: a booking may come several times.
    const known = new Map<string, Handed>();
    for (const one of found) {
      const { bookingId, changeId } = one.entry;
      const handed = known.get(bookingId) ?? one.found.handed;
      const sought = { changeId, isRetry: false, filter, isLatest: mode === "latest" };
      const decision = decide(sought, { ...one.found, handed });
      if (decision.kind !== "hand") continue;
      ready.push(this.#toReady(one, decision));
      if (decision.handed === null) continue;
      known.set(bookingId, decision.handed);
      if (handed !== "inside") learned.set(bookingId, decision.handed);
    }
    const left = [...known].filter(([id, handed]) => handed === "outside" && learned.get(id) !== "outside");
    return { ready, learned, left: new Map(left) };
  }

  /** If the consumer wants the latest only. */
  #withoutOverridden(entries: Entry[]): Entry[] {
    if (this.#options.mode === "every") return entries;
    const last = new Map(entries.flatMap((entry) => (entry.standsForOthers ? [[entry.bookingId, entry]] : [])));
    const isOverridden = (entry: Entry) => {
      const other = last.get(entry.bookingId);
      return other !== undefined && isOld(entry.atMs) && (other.changeId ?? 0) > (entry.changeId ?? 0);
    };
    const skipped = new Set(entries.filter(isOverridden).map(({ bookingId }) => bookingId));
    return entries
      .filter((entry) => !isOverridden(entry))
      .map((entry) => ({ ...entry, standsForEarlier: entry.standsForEarlier || skipped.has(entry.bookingId) }));
  }

  async #find(entry: Entry): Promise<FoundEntry> {
    const { name, token } = this;
    const addressee = { name, token, isLatest: this.#options.mode === "latest", mayWait: false };
    const place = this.#intake.place.lastId;
    return { entry, ...(await findDelivery(this.#host, addressee, { ...entry, place })) };
  }

  #toReady({ entry, hasLeftFeed, staleAtMs }: FoundEntry, { change, sinceId }: Handing): Ready {
    const { bookingId, changeId } = entry;
    return {
      delivery: toDelivery(this.name, entry, { change, attempt: this.#failures + 1, sinceId, hasLeftFeed }),
      row: change.id === changeId ? undefined : { bookingId, doneId: change.id, waiting: null },
      staleAtMs,
    };
  }

  #attempt({ deliveries, place, rows }: Batch): Promise<Outcome> {
    const { handleBatch, timeoutMs } = this.#options;
    const { pool, tables } = this.#host;
    const { name, token } = this;
    const progress: Progress = { name, token, place, isWorking: true, breaker: null, rows };
    return runAttempt((context) => handleBatch(deliveries, context), {
      pool,
      timeoutMs,
      signal: this.#aborting.signal,
      record: async (client) => (await recordProgress(client, tables, [progress])).length === 1,
    });
  }
}
