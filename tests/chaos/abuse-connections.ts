import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { repeat } from "@booking-events/runtime";
import type { Dial } from "./entrance.ts";

/** How often each status has come so far; "none": the connection ended without an answer. */
export type Statuses = Readonly<Record<string, number>>;

interface Abuse {
  dial: Dial;
  signal: AbortSignal;
}

const bodyBytes = 65_536;
const smallChunks = Buffer.from("1\r\n \r\n".repeat(60_000));
/** Without it, the abuse takes whatever CPU time the machine has left, and says nothing about the service. */
const pauseMs = 100;
const askTimeoutMs = 5_000;

/**
 * Until the signal aborts, sends bodies in chunks of one byte over some connections at once.
 *
 * @param path with the secret
 */
export function sendSmallChunks(path: string, connections: number, { dial, signal }: Abuse): Statuses {
  const statuses: Record<string, number> = {};
  const head = headOf(path, "application/json", "Transfer-Encoding: chunked");
  for (let number = 0; number < connections; number += 1) {
    const send = () =>
      attempt(dial, statuses, signal, (socket) => {
        socket.write(head);
        socket.write(smallChunks);
      });
    void repeat(send, pauseMs, signal);
  }
  return statuses;
}

/** Until the signal aborts, begins the largest bodies and finishes none. */
export function leaveBodiesUnfinished(path: string, perSecond: number, { dial, signal }: Abuse): Statuses {
  const statuses: Record<string, number> = {};
  const head = headOf(path, "application/json", `Content-Length: ${bodyBytes}`);
  const most = Buffer.alloc(bodyBytes - 1, " ");
  const begin = async () => {
    void attempt(dial, statuses, signal, (socket) => {
      socket.write(head);
      socket.write(most);
    });
  };
  void repeat(begin, 1_000 / perSecond, signal);
  return statuses;
}

/** Until the signal aborts, each secret sends a list of which a line comes now and then. */
export function sendSlowLists(secrets: readonly string[], { dial, signal }: Abuse): Statuses {
  const statuses: Record<string, number> = {};
  for (const secret of secrets) {
    const send = () =>
      attempt(dial, statuses, signal, (socket) => {
        socket.write(
          headOf(`/booking-event/reconcile/${secret}`, "application/x-ndjson", `Content-Length: ${bodyBytes}`),
        );
        const timer = setInterval(() => socket.write('{"reference":"SLOW"}\n'), pauseMs);
        socket.once("close", () => clearInterval(timer));
      });
    void repeat(send, pauseMs, signal);
  }
  return statuses;
}

/** Until the signal aborts, compares a short list once a second, as a well-behaved partner does. */
export function compareLists(secret: string, { dial, signal }: Abuse): Statuses {
  const statuses: Record<string, number> = {};
  const body = '{"reference":"TRIP-0"}\n{"reference":"TRIP-1"}\n';
  const compare = async () => {
    await sleep(1_000, undefined, { signal }).catch(() => {});
    if (signal.aborted) return;
    await attempt(dial, statuses, AbortSignal.timeout(30_000), (socket) =>
      socket.write(
        `${headOf(`/booking-event/reconcile/${secret}`, "application/x-ndjson", `Content-Length: ${body.length}`)}${body}`,
      ),
    );
  };
  void repeat(compare, 0, signal);
  return statuses;
}

function headOf(path: string, type: string, framing: string): string {
  return `POST ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: ${type}\r\n${framing}\r\n\r\n`;
}

/** @returns the status of the answer to a POST without a body; undefined: there was none */
export async function ask(path: string, dial: Dial): Promise<string | undefined> {
  const statuses: Record<string, number> = {};
  await attempt(dial, statuses, AbortSignal.timeout(askTimeoutMs), (socket) =>
    socket.write(headOf(path, "application/json", "Content-Length: 0")),
  );
  return Object.keys(statuses)[0];
}

/** Resolves when the connection has ended, and counts what was answered. An attempt that we end counts nothing. */
async function attempt(
  dial: Dial,
  statuses: Record<string, number>,
  signal: AbortSignal,
  send: (socket: Socket) => void,
): Promise<void> {
  const socket = dial();
  const stop = () => socket.destroy();
  signal.addEventListener("abort", stop);
  let received = "";
  socket.setEncoding("latin1").on("data", (text: unknown) => {
    if (received.length < 100) received += String(text);
  });
  socket.on("error", () => {});
  send(socket);
  await new Promise<void>((resolve) => socket.once("close", () => resolve()));
  signal.removeEventListener("abort", stop);
  const status = /^HTTP\/1\.1 (\d{3})/.exec(received)?.[1];
  if (status === undefined && signal.aborted) return;
  statuses[status ?? "none"] = (statuses[status ?? "none"] ?? 0) + 1;
}
