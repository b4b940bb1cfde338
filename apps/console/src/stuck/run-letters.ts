import {
  type ActingContext,
  type DeadLetter,
  discardDeadLetters,
  findLetters,
  maxLetters,
  type Replay,
  replayDeadLetters,
} from "@booking-events/operations";
import type { Task, Tasks } from "../tasks/tasks.ts";
import type { LettersReport } from "./letters-report.ts";

export interface LetterFilter {
  partner: string | undefined;
  code: string | undefined;
  /** Letters that failed later are left alone: nobody has seen them. */
  until: Date;
}

const maxExamples = 20;

/** Puts all open dead letters that match back into the queue, as a task. */
export async function runReplay(tasks: Tasks, operations: ActingContext, filter: LetterFilter): Promise<Task> {
  const letters = await find(operations, filter);
  const report = createReport("replay", filter, letters);
  return tasks.begin(operations, report, async (acting, signal) => {
    const count = ({ eventId, result, detail }: Replay) => {
      report.handled += 1;
      if (result !== "waiting") add(report, { eventId, result, detail });
    };
    const replays = await replayDeadLetters(acting, letters, { isAwaited: true, count, signal });
    // Only now is it known what became of those that were put into the queue.
    report.results.clear();
    report.examples.length = 0;
    for (const replay of replays) add(report, replay);
  });
}

/** Closes all open dead letters that match, as a task. */
export async function runDiscard(
  tasks: Tasks,
  operations: ActingContext,
  filter: LetterFilter,
  reason: string,
): Promise<Task> {
  const letters = await find(operations, filter);
  const report = createReport("discard", filter, letters);
  return tasks.begin(operations, report, (acting, signal) =>
    discardDeadLetters(acting, letters, {
      reason,
      signal,
      count(discard) {
        report.handled += 1;
        add(report, discard);
      },
    }),
  );
}

function find(operations: ActingContext, { partner, code, until }: LetterFilter): Promise<DeadLetter[]> {
  return findLetters(operations, { partner, errorCode: code, until, limit: maxLetters });
}

function createReport(kind: LettersReport["kind"], filter: LetterFilter, letters: DeadLetter[]): LettersReport {
  const { partner, code } = filter;
  return { kind, filter: { partner, code }, total: letters.length, handled: 0, results: new Map(), examples: [] };
}

function add(report: LettersReport, found: LettersReport["examples"][number]): void {
  const { result } = found;
  report.results.set(result, (report.results.get(result) ?? 0) + 1);
  const isGood = result === "applied" || result === "discarded";
  if (!isGood && report.examples.length < maxExamples) report.examples.push(found);
}
