import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import { CannotCheck } from "../cannot-check.ts";
import { type SenderReport, SenderRun } from "./sender-run.ts";

export interface PlayReceiverOptions {
  port: number;
  /** Default: 127.0.0.1. */
  host?: string;
  /** Default: a random one. */
  secret?: string;
  /** Divides the times that this program waits. Default: 1. */
  speed?: number;
  /** How long a run may take from the first request on. Default: 60,000 ms. */
  timeoutMs?: number;
  /** Ends the run. */
  signal?: AbortSignal;
}

export interface PlayedReceiver {
  url: string;
  secret: string;
  /** Resolves when the run has ended. */
  report: Promise<SenderReport>;
}

const checkIntervalMs = 50;

/**
 * Plays a receiver with faults: each new event gets the next scenario.
 *
 * @throws CannotCheck if it cannot listen
 */
export async function playReceiver(options: PlayReceiverOptions): Promise<PlayedReceiver> {
  const { port, host = "127.0.0.1", timeoutMs = 60_000, signal } = options;
  const { secret = `conformance-${randomBytes(8).toString("hex")}`, speed = 1 } = options;
  const run = new SenderRun(secret, speed);
  const server = createServer((request, response) => void run.receive(request, response));
  try {
    await once(server.listen(port, host), "listening");
  } catch (cause) {
    throw new CannotCheck(`Cannot listen at ${host}, port ${port} (${Object(cause).code}).`, { cause });
  }

  async function awaitReport(): Promise<SenderReport> {
    while (!signal?.aborted && !run.isOver(timeoutMs)) await wait(checkIntervalMs);
    await close(server);
    return run.report();
  }
  const { port: ownPort } = server.address() as AddressInfo;
  return { url: `http://${host.includes(":") ? `[${host}]` : host}:${ownPort}`, secret, report: awaitReport() };
}

async function close(server: Server): Promise<void> {
  server.close();
  server.closeAllConnections();
  await once(server, "close");
}
