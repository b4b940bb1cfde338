import { randomBytes } from "node:crypto";
import { type ActingContext, OperationFailure } from "@booking-events/operations";
import type { Logger } from "@booking-events/runtime";
import type { RestoreReport } from "../restore/restore-report.ts";
import type { LettersReport } from "../stuck/letters-report.ts";

/** What a task has found out and done so far. The work changes it as it goes on. */
export type Report = RestoreReport | LettersReport;

/** Work of this process that takes longer than a request. */
export interface Task {
  id: string;
  by: string;
  beganAt: Date;
  endedAt: Date | null;
  state: "running" | "done" | "failed" | "cancelled";
  /** Why it failed, as a sentence. */
  problem: string | null;
  /** What operations have remarked. */
  remarks: string[];
  report: Report;
}

type Work = (operations: ActingContext, signal: AbortSignal) => Promise<unknown>;

interface Kept {
  task: Task;
  controller: AbortController;
  ending: Promise<void>;
}

const maxRunning = 5;
const maxKept = 50;
const maxRemarks = 20;
/** Shorter work is done when the first page of it is shown. */
const firstLookMs = 1_000;

/**
 * The tasks of this process. They are in its memory: what a task has done is in the database and the queue, and the same
 * work can be begun again safely.
 */
export class Tasks {
  readonly #kept = new Map<string, Kept>();
  readonly #logger: Logger;
  readonly #stopping: AbortSignal;

  /** @param stopping cancels all, those that begin later, too */
  constructor({ logger, stopping }: { logger: Logger; stopping: AbortSignal }) {
    this.#logger = logger;
    this.#stopping = stopping;
  }

  /**
   * Begins work, and waits a moment for its end.
   *
   * @throws OperationFailure if there are too many
   */
  async begin(operations: ActingContext, report: Report, work: Work): Promise<Task> {
    if (this.list().filter(({ state }) => state === "running").length >= maxRunning)
      throw new OperationFailure(`${maxRunning} tasks run already. Wait until one has ended, or cancel one.`);
    const { by, now } = operations;
    const task: Task = {
      id: randomBytes(12).toString("hex"),
      by,
      beganAt: now(),
      endedAt: null,
      state: "running",
      problem: null,
      remarks: [],
      report,
    };
    const controller = new AbortController();
    const notify = (text: string) => void (task.remarks.length < maxRemarks && task.remarks.push(text));
    const signal = AbortSignal.any([this.#stopping, controller.signal]);
    const ending = this.#run(task, signal, () => work({ ...operations, notify }, signal), now);
    this.#kept.set(task.id, { task, controller, ending });
    this.#forgetOld();
    await Promise.race([ending, new Promise((resolve) => setTimeout(resolve, firstLookMs).unref())]);
    return task;
  }

  async #run(task: Task, signal: AbortSignal, work: () => Promise<unknown>, now: () => Date): Promise<void> {
    try {
      await work();
      task.state = "done";
    } catch (error) {
      task.state = signal.aborted ? "cancelled" : "failed";
      if (error instanceof OperationFailure) task.problem = signal.aborted ? null : error.message;
      else {
        task.problem = "This is a mistake in the console. Its log says more.";
        this.#logger.error({ err: error }, "a task failed");
      }
    }
    task.endedAt = now();
  }

  /** The newest first. */
  list(): Task[] {
    return Array.from(this.#kept.values(), ({ task }) => task).reverse();
  }

  find(id: string): Task | undefined {
    return this.#kept.get(id)?.task;
  }

  /** What was done until then stays. @returns false if it has ended, or there is none */
  cancel(id: string): boolean {
    const kept = this.#kept.get(id);
    if (kept === undefined || kept.task.state !== "running") return false;
    kept.controller.abort();
    return true;
  }

  async untilEnded(): Promise<void> {
    await Promise.all(Array.from(this.#kept.values(), ({ ending }) => ending));
  }

  #forgetOld(): void {
    for (const [id, { task }] of this.#kept) {
      if (this.#kept.size <= maxKept) return;
      if (task.state !== "running") this.#kept.delete(id);
    }
  }
}
