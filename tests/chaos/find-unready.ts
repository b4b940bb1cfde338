import { setTimeout as sleep } from "node:timers/promises";
import type { SupervisedApp } from "./supervise.ts";

const readyTimeoutMs = 90_000;
const readyPollMs = 200;

/** Waits until each app says that it is ready. Resolves to sentences about those that do not become so. */
export async function findUnready(apps: SupervisedApp[], signal: AbortSignal): Promise<string[]> {
  const endAtMs = performance.now() + readyTimeoutMs;
  const unready = await Promise.all(
    apps.map(async (app) => {
      while (!(await app.isReady())) {
        if (performance.now() > endAtMs) return `${app.name} was not ready after ${readyTimeoutMs / 1_000} s`;
        await sleep(readyPollMs, undefined, { signal });
      }
      return undefined;
    }),
  );
  return unready.filter((sentence) => sentence !== undefined);
}
