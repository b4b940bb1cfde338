import { growingPauseMs } from "../pauses.ts";
import { changedFields } from "./changed-fields.ts";
import type { BatchConsumer as Options } from "./consumer-options.ts";
import { decide } from "./decide.ts";
import { type DeliveryRow, type Progress, recordProgress } from "./deliveries.ts";
import type { Delivery } from "./delivery.ts";
import type { ActiveConsumer, Host } from "./host.ts";
import { type Entry, Intake, isOld } from "./intake.ts";
import type { Lease } from "./leases.ts";
import { PendingProgress } from "./pending-progress.ts";
import type { Place } from "./place.ts";
import { readBooking } from "./read-booking.ts";
import { recordHanded } from "./record-handed.ts";
import { type Outcome, runAttempt } from "./run-attempt.ts";

const longestPauseMs = 60_000;

/** Deliveries of a batch, and what there is to record once all are done. */
interface Batch {
  deliveries: Delivery[];
  place: Place;
  rows: DeliveryRow[];
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
  #timer: NodeJS.Timeout | undefined;

  constructor(options: Options, { token, validUntilMs, place }: Lease & { place: Place }, host: Host) {
    this.name = options.name;
    this.token = token;
    this.validUntilMs = validUntilMs;
    this.#options = options;
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
    this.hasSpent ||= progress.rows.length > 0;
    return { name: this.name, token: this.token, ...progress };
  }

  recorded(): void {
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
    const entries = this.#entries.slice(0, this.#options.batchSize);
    const batch = await this.#prepare(entries);
    this.#aborting.signal.throwIfAborted();
    if (batch === undefined || performance.now() > this.validUntilMs) {
      this.#host.lose(this);
      return false;
    }
    if (batch.deliveries.length === 0) return this.#finish(entries, batch, true);
    const startMs = performance.now();
    const outcome = await this.#attempt(batch);
    this.#aborting.signal.throwIfAborted();
    this.#observe(outcome, batch.deliveries, startMs);
    return this.#settle(entries, batch, outcome);
  }

  #settle(entries: Entry[], batch: Batch, outcome: Outcome): boolean {
    switch (outcome.kind) {
      case "done":
        this.#failures = 0;
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
    if (rows.length > 0) this.hasSpent = true;
    if (!isRecorded) for (const row of rows) this.#pending.addRow(row);
    return true;
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
    if (found.includes("lost")) return undefined;
    const ready = found.filter((one) => typeof one === "object");
    // An erasure takes the place of everything else of its booking.
    const byChange = new Map(ready.map((one) => [one.delivery.key, one]));
    return {
      deliveries: [...byChange.values()].map(({ delivery }) => delivery),
      place: entries.at(-1)?.place ?? this.#intake.place,
      rows: [...byChange.values()].flatMap(({ row }) => row ?? []),
    };
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

  async #find(entry: Entry): Promise<{ delivery: Delivery; row: DeliveryRow | undefined } | "lost" | "nothing"> {
    const { name, token } = this;
    const { mode, filter } = this.#options;
    const { bookingId, changeId } = entry;
    const { read, tables } = this.#host;
    const isLatest = mode === "latest";
    const found = await this.#host.find({ name, token, bookingId, changeId, isLatest });
    const hasLeftFeed = found.change === null;
    const asId = changeId ?? this.#intake.place.lastId;
    if (found.isHeld) found.change ??= await read((client) => readBooking(client, tables, { bookingId, asId }));
    const decision = decide({ changeId, isRetry: false, filter, isLatest }, found);
    if (decision.kind === "lost") return "lost";
    if (decision.kind !== "hand") return "nothing";
    const { change, handed } = decision;
    if (handed !== null)
      await read((client) => recordHanded(client, tables, { name, token, bookingId, isInside: handed === "inside" }));
    const standsForEarlier = entry.standsForEarlier || hasLeftFeed || change.id !== changeId;
    const key = `${name}-${hasLeftFeed ? `${change.bookingId}-${change.revision}` : change.id}`;
    const fields = standsForEarlier ? null : changedFields(change);
    return {
      delivery: { change, key, attempt: this.#failures + 1, changedFields: fields, standsForEarlier },
      row: change.id === changeId ? undefined : { bookingId, doneId: change.id, waiting: null },
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

  #observe(outcome: Outcome, deliveries: Delivery[], startMs: number): void {
    const oldest = Math.min(...deliveries.map(({ change }) => change.changedAt.getTime()));
    this.#host.observe({
      type: "attempt",
      name: this.name,
      outcome: outcome.kind,
      failure: outcome.kind === "failed" || outcome.kind === "timeout" ? outcome.failure : null,
      durationMs: performance.now() - startMs,
      sinceChangeMs: Date.now() - oldest,
      deliveries: deliveries.length,
    });
  }
}
