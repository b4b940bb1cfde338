import { setTimeout as sleep } from "node:timers/promises";
import type { Random } from "./random.ts";

/** Something that happens to servers with replicas, on which the service must go on. */
export interface MachineFault {
  /** What happens, such as "a primary's machine dies". */
  name: string;
  /** Makes it happen, undoes it, and resolves when everything is as it should be. */
  strike(chances: Chances): Promise<void>;
}

export interface Chances {
  random: Random;
  /** Resolves when the fault has lasted long enough, or the run ends. */
  last(): Promise<void>;
}

/** When a fault began, and when all was well again, by `performance.now()`. */
export interface Strike {
  name: string;
  startedAtMs: number;
  endedAtMs: number;
}

const gapMs = { least: 500, most: 2_000 };

/**
 * One fault after the other, because two at once may lose events. Each kind comes once in a random order before any
 * comes again.
 *
 * @param options.names only these faults, in this order, once each
 * @param options.forMs otherwise, begins no fault after this time
 */
export async function strikeMachines(options: {
  faults: readonly MachineFault[];
  names?: readonly string[] | undefined;
  random: Random;
  lastMs: { least: number; most: number };
  forMs: number;
  /** Resolves when events are being accepted: a fault must hit a service that works. */
  untilServing: () => Promise<void>;
  signal: AbortSignal;
  onFault: (name: string) => void;
}): Promise<Strike[]> {
  const { faults, names, random, lastMs, forMs, untilServing, signal, onFault } = options;
  const strikes: Strike[] = [];
  const startedAtMs = performance.now();
  const pause = ({ least, most }: typeof gapMs) =>
    sleep(random.between(least, most), undefined, { signal }).catch(() => {});

  for (const fault of names === undefined ? shuffleForever(faults, random) : named(faults, names)) {
    await pause(gapMs);
    await untilServing();
    const isOver = names === undefined && performance.now() - startedAtMs >= forMs;
    if (signal.aborted || isOver) break;
    onFault(fault.name);
    const strike = { name: fault.name, startedAtMs: performance.now(), endedAtMs: Number.POSITIVE_INFINITY };
    await fault.strike({ random, last: () => pause(lastMs) });
    strikes.push({ ...strike, endedAtMs: performance.now() });
  }
  return strikes;
}

function* shuffleForever(faults: readonly MachineFault[], random: Random): Generator<MachineFault> {
  while (faults.length > 0) {
    const left = [...faults];
    while (left.length > 0) {
      const next = random.pick(left);
      left.splice(left.indexOf(next), 1);
      yield next;
    }
  }
}

function named(faults: readonly MachineFault[], names: readonly string[]): MachineFault[] {
  return names.map((name) => {
    const fault = faults.find((one) => one.name === name);
    if (fault === undefined) throw new Error(`This system can't have the fault "${name}".`);
    return fault;
  });
}
