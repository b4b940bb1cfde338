import type { AttemptedEvent } from "./sent-events.ts";

/** What a sender should do in the whole run. */
export interface Habit {
  /** Stable: scripts may depend on it. */
  name: string;
  demand: string;
  /** Returns what the sender did instead; undefined if it sent nothing that could show it. */
  judge(events: readonly AttemptedEvent[]): string[] | undefined;
}

export const habits: readonly Habit[] = [
  {
    name: "own-keys",
    demand:
      "Each event has an Idempotency-Key of its own: a return to earlier content under its key would change nothing.",
    judge: judgeKeys,
  },
  {
    name: "one-after-another",
    demand: "The next event of a booking is sent when the previous one has its answer, and no earlier one follows it.",
    judge: judgeOrder,
  },
];

function judgeKeys(events: readonly AttemptedEvent[]): string[] | undefined {
  if (events.length === 0) return undefined;
  const firstWith = new Map<string, number>();
  return events.flatMap(({ attempts: [{ key }] }, index) => {
    if (key === undefined) return [];
    const earlier = firstWith.get(key);
    if (earlier !== undefined) return [`${nameOf(events, index)} has the key of ${nameOf(events, earlier)}`];
    firstWith.set(key, index);
    return [];
  });
}

function judgeOrder(events: readonly AttemptedEvent[]): string[] | undefined {
  const pairs = events.flatMap((later, laterIndex) =>
    events
      .slice(0, laterIndex)
      .flatMap((earlier, index) => (earlier.booking === later.booking ? [{ earlier, index, later, laterIndex }] : [])),
  );
  if (pairs.length === 0) return undefined;
  return pairs.flatMap(({ earlier, index, later, laterIndex }) => {
    const names = [nameOf(events, index), nameOf(events, laterIndex)] as const;
    const [{ arrivedAtMs }] = later.attempts;
    if (earlier.attempts.some((attempt) => attempt.arrivedAtMs > arrivedAtMs)) {
      return [`${names[0]} was sent again after ${names[1]}, of the same booking`];
    }
    const isWaiting = earlier.attempts.some(({ endedAtMs = Number.POSITIVE_INFINITY }) => endedAtMs > arrivedAtMs);
    return isWaiting ? [`${names[1]} was sent before ${names[0]}, of the same booking, had its answer`] : [];
  });
}

/** By its number, because references and keys are the sender's data. */
function nameOf(events: readonly AttemptedEvent[], index: number): string {
  return `event ${index + 1} (${events[index]?.kind})`;
}
