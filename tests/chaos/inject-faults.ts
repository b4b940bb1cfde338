import { setTimeout as sleep } from "node:timers/promises";
import type { Fault, TargetName } from "./fault-plan.ts";

/** A process or server that can be hit. */
export interface FaultTarget {
  /** A server's child processes get the signal as well. */
  kill(signal: NodeJS.Signals): void;
  ended(): Promise<void>;
  restart(): Promise<void>;
}

type Action = (amountMs: number, signal: AbortSignal) => Promise<void>;

/**
 * Carries the plan out. Resolves when all is over: everything that was ended runs again, everything frozen has been
 * continued. That is so too when this rejects, because a server does not come back or a fault did not show, and when
 * the signal aborts.
 */
export async function injectFaults(
  plan: readonly Fault[],
  system: {
    targets: ReadonlyMap<TargetName, FaultTarget>;
    setRedisClock: Action | undefined;
    presentExpired: Action | undefined;
  },
  { signal, onFault }: { signal: AbortSignal; onFault: (fault: Fault) => void },
): Promise<void> {
  const startedAtMs = performance.now();
  const pause = (forMs: number) => sleep(forMs, undefined, { signal }).catch(() => {});
  /** Of each target, the last action that was not a freeze: the next one waits for it. */
  const last = new Map<TargetName, Promise<void>>();
  const thaws: Promise<void>[] = [];

  async function carryOut(fault: Exclude<Fault, { action: "freeze" }>): Promise<void> {
    await last.get(fault.target);
    if (fault.action === "end") return await endAndRestart(fault);
    const [act, amountMs] =
      fault.action === "set clock" ? [system.setRedisClock, fault.aheadMs] : [system.presentExpired, fault.forMs];
    if (act === undefined) throw new Error(`This system can't ${fault.action}.`);
    await act(amountMs, signal);
  }

  async function endAndRestart({ target, signal: how, downMs }: Fault & { action: "end" }): Promise<void> {
    const hit = find(target);
    const ended = hit.ended();
    hit.kill(how);
    await ended;
    await pause(downMs);
    await hit.restart();
  }

  async function freeze({ target, forMs }: Fault & { action: "freeze" }): Promise<void> {
    find(target).kill("SIGSTOP");
    await pause(forMs);
    find(target).kill("SIGCONT");
  }

  function find(target: TargetName): FaultTarget {
    const found = system.targets.get(target);
    if (found === undefined) throw new Error(`This system has no ${target}.`);
    return found;
  }

  for (const fault of plan) {
    await pause(Math.max(0, startedAtMs + fault.atMs - performance.now()));
    if (signal.aborted) break;
    onFault(fault);
    if (fault.action === "freeze") {
      thaws.push(freeze(fault));
    } else {
      const underWay = carryOut(fault);
      underWay.catch(() => {});
      last.set(fault.target, underWay);
    }
  }
  await Promise.all(thaws);
  await Promise.all(last.values());
}
