import { setTimeout as sleep } from "node:timers/promises";
import type { FakeClocks } from "./fake-clocks.ts";
import type { Fault, TargetName } from "./fault-plan.ts";

/** A process or server that can be hit. */
export interface FaultTarget {
  /** A server's child processes get the signal as well. */
  kill(signal: NodeJS.Signals): void;
  ended(): Promise<unknown>;
  restart(): Promise<void>;
}

type Action = (amountMs: number, signal: AbortSignal) => Promise<void>;

const unable: Action = () => Promise.reject(new Error("The plan has a fault that this system can't have."));

/**
 * Carries the plan out. Resolves when all is over: everything that was ended runs again, everything frozen has been
 * continued. That is so too when this rejects, because a server does not come back or a fault did not show, and when
 * the signal aborts.
 */
export async function injectFaults(
  plan: readonly Fault[],
  system: {
    targets: ReadonlyMap<TargetName, FaultTarget>;
    clocks: Pick<FakeClocks, "set"> | undefined;
    presentExpired: Action | undefined;
  },
  { signal, onFault }: { signal: AbortSignal; onFault: (fault: Fault) => void },
): Promise<void> {
  const startedAtMs = performance.now();
  const pause = (forMs: number) => sleep(forMs, undefined, { signal }).catch(() => {});
  /** Of each target, the last action that was not a freeze: the next one waits for it. */
  const last = new Map<TargetName, Promise<void>>();
  const all: Promise<void>[] = [];

  async function carryOut(fault: Fault): Promise<void> {
    const target = system.targets.get(fault.target);
    if (target === undefined) return await unable(0, signal);
    if (fault.action === "freeze") {
      target.kill("SIGSTOP");
      await pause(fault.forMs);
      target.kill("SIGCONT");
      return;
    }
    await last.get(fault.target);
    if (fault.action === "set clock" || fault.action === "wrong clock") {
      if (system.clocks === undefined) return await unable(0, signal);
      await system.clocks.set(fault.target, fault.aheadMs, signal);
      if (fault.action === "set clock") return;
      await pause(fault.forMs);
      return await system.clocks.set(fault.target, 0, signal);
    }
    if (fault.action === "expire certificate") return await (system.presentExpired ?? unable)(fault.forMs, signal);
    const ended = target.ended();
    target.kill(fault.signal);
    await ended;
    await pause(fault.downMs);
    await target.restart();
  }

  for (const fault of plan) {
    await pause(Math.max(0, startedAtMs + fault.atMs - performance.now()));
    if (signal.aborted) break;
    onFault(fault);
    const underWay = carryOut(fault);
    all.push(underWay);
    if (fault.action !== "freeze") last.set(fault.target, underWay);
    // A failure is reported when all is over.
    underWay.catch(() => {});
  }
  await Promise.allSettled(all);
  await Promise.all(all);
}
