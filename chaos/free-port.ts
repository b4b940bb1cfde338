import { isPortFree } from "../scripts/ports.ts";

/**
 * Below the ports that operating systems give to outgoing connections (from 32768 on Linux, 49152 on macOS): while a
 * process that was killed is down, a client's connection must not take its port.
 */
const firstPort = 15_000;
const portCount = 17_000;
const taken = new Set<number>();

/** A port of 127.0.0.1 that nobody uses, and that this process has not handed out before. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = firstPort + Math.floor(Math.random() * portCount);
    if (taken.has(port) || !(await isPortFree(port))) continue;
    taken.add(port);
    return port;
  }
}
