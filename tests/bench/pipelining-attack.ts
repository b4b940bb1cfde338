import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { constants, setPriority } from "node:os";
import { parentPort, Worker, workerData } from "node:worker_threads";

/** What one attack does over and over, on each of its connections. */
interface AttackPlan {
  port: number;
  durationMs: number;
  /** False: it never reads an answer. */
  isReading: boolean;
}

const connections = 200;
/** As much as a client can send before it has to wait, and four times what Node reads at once. */
const bytes = Buffer.from("GET /x HTTP/1.1\r\nHost: x\r\n\r\n".repeat(Math.ceil((256 * 1_024) / 28)));

if (parentPort !== null) {
  // Strangers have machines of their own. Here they get what Redis and the partner leave of the CPU; on Linux, the
  // priority is the thread's.
  setPriority(constants.priority.PRIORITY_LOW);
  parentPort.postMessage(await attack(workerData as AttackPlan));
}

/**
 * 200 connections with 256 KiB of the smallest request on each, opened again as fast as they are closed. In a thread of
 * its own, so that it is not in the way of another load.
 *
 * @returns connections a second
 */
export async function attackAside(plan: AttackPlan): Promise<number> {
  const worker = new Worker(new URL(import.meta.url), { workerData: plan });
  const [opened] = (await once(worker, "message")) as [number];
  await worker.terminate();
  return opened / (plan.durationMs / 1_000);
}

async function attack({ port, durationMs, isReading }: AttackPlan): Promise<number> {
  const endAtMs = performance.now() + durationMs;
  const open = new Set<Socket>();
  const stop = setTimeout(() => {
    for (const socket of open) socket.destroy();
  }, durationMs);
  let opened = 0;

  async function attackOnce(): Promise<void> {
    const socket = connect({ port, host: "127.0.0.1" });
    open.add(socket);
    socket.on("error", () => {});
    const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
    socket.once("connect", () => {
      opened += 1;
      // It learns that it was cut off when it can't write. Once everything is written, it begins again.
      socket.write(bytes, () => {
        if (!isReading) socket.resetAndDestroy();
      });
    });
    if (isReading) socket.resume();
    await closed;
    open.delete(socket);
  }

  const attackers = Array.from({ length: connections }, async () => {
    while (performance.now() < endAtMs) await attackOnce();
  });
  await Promise.all(attackers);
  clearTimeout(stop);
  return opened;
}
