import { setTimeout as sleep } from "node:timers/promises";
import type { AppName, Fault, TargetName } from "./fault-plan.ts";

/** A process or server that can be hit. */
export interface FaultTarget {
  /** To its child processes, too. */
  kill(signal: NodeJS.Signals): void;
  ended(): Promise<void>;
  restart(): Promise<void>;
}

export type FaultTargets = Readonly<Record<AppName, FaultTarget>> & {
  redis: FaultTarget & { setClock(aheadMs: number, signal: AbortSignal): Promise<void> };
  postgres: FaultTarget & { presentExpired(forMs: number, signal: AbortSignal): Promise<void> };
};

/**
 * Carries the plan out. Resolves when all is over: everything that was ended runs again, everything frozen has been
 * continued. That holds also when the signal aborts, or when a server does not come back or a fault did not show, and
 * this rejects.
 */
export async function injectFaults(
  plan: readonly Fault[],
  targets: FaultTargets,
  { signal, onFault }: { signal: AbortSignal; onFault: (fault: Fault) => void },
): Promise<void> {
  const startedAtMs = performance.now();
  /** Of each target, what was begun last and is not a freeze: the next one waits for it. */
  const last = new Map<TargetName, Promise<void>>();
  const thaws: Promise<void>[] = [];

  async function carryOut(fault: Exclude<Fault, { action: "freeze" }>): Promise<void> {
    await last.get(fault.target);
    if (fault.action === "set clock") await targets.redis.setClock(fault.aheadMs, signal);
    else if (fault.action === "expire certificate") await targets.postgres.presentExpired(fault.forMs, signal);
    else await endAndRestart(fault);
  }

  async function endAndRestart({ target, signal: how, downMs }: Fault & { action: "end" }): Promise<void> {
    const hit = targets[target];
    const ended = hit.ended();
    hit.kill(how);
    await ended;
    await sleep(downMs, undefined, { signal }).catch(() => {});
    await hit.restart();
  }

  async function freeze({ target, forMs }: Fault & { action: "freeze" }): Promise<void> {
    targets[target].kill("SIGSTOP");
    await sleep(forMs, undefined, { signal }).catch(() => {});
    targets[target].kill("SIGCONT");
  }

  for (const fault of plan) {
    const waitMs = startedAtMs + fault.atMs - performance.now();
    if (waitMs > 0) await sleep(waitMs, undefined, { signal }).catch(() => {});
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
