import type { Scenario } from "./scenarios.ts";
import type { Attempt } from "./sent-events.ts";

/** Timers may fire slightly early. */
const toleranceMs = 20;
/** The last delay as a multiple of the first. Delays that double with half of each random reach at least 2. */
const leastGrowth = 1.25;

/** Returns what the sender did instead of what the scenario demands; an empty list if nothing. */
export function judgeScenario(scenario: Scenario, attempts: readonly Attempt[]): string[] {
  return [
    ...judgeNumber(scenario, attempts),
    ...judgeSameness(attempts),
    ...judgeDelays(scenario, attempts),
    ...(attempts.some(({ isWaitTooLong }) => isWaitTooLong)
      ? ["waited for an answer until the connection closed"]
      : []),
  ];
}

/** Returns the time from the end of each attempt to the beginning of the next one, in milliseconds. */
export function delaysOf(attempts: readonly Attempt[]): number[] {
  return attempts.slice(1).map(({ arrivedAtMs }, index) => {
    const { endedAtMs = arrivedAtMs } = attempts[index] as Attempt;
    return Math.max(0, Math.round(arrivedAtMs - endedAtMs));
  });
}

function judgeNumber({ steps }: Scenario, { length }: readonly Attempt[]): string[] {
  if (length === steps.length) return [];
  return [`${length} ${length === 1 ? "attempt" : "attempts"} instead of ${steps.length}`];
}

function judgeSameness(attempts: readonly Attempt[]): string[] {
  const [first, ...others] = attempts;
  if (first === undefined) return [];
  const { key, type, body } = first;
  return [
    ...(key === undefined ? ["no Idempotency-Key"] : []),
    ...(others.some((other) => other.key !== key) ? ["another Idempotency-Key in a later attempt"] : []),
    ...(others.some((other) => other.type !== type) ? ["another Content-Type in a later attempt"] : []),
    ...(others.some((other) => !other.body.equals(body)) ? ["other bytes in a later attempt"] : []),
  ];
}

function judgeDelays({ steps, backsOff }: Scenario, attempts: readonly Attempt[]): string[] {
  const delays = delaysOf(attempts);
  const early = delays.filter((delayMs, index) => delayMs < retryAfterMs(steps[index]) - toleranceMs);
  const [first = 0, last = 0] = [delays.at(0), delays.at(-1)];
  const isGrowing = !backsOff || delays.length < 2 || last >= first * leastGrowth;
  return [
    ...early.map((delayMs) => `sent again after ${delayMs} ms, before Retry-After`),
    ...(isGrowing ? [] : [`delays that do not grow: ${delays.join(", ")} ms`]),
  ];
}

function retryAfterMs(step: Scenario["steps"][number] | undefined): number {
  return typeof step === "object" ? Number(step.headers?.["Retry-After"] ?? 0) * 1_000 : 0;
}
