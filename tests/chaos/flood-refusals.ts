import { cutOff, type Dial } from "./entrance.ts";

/** Without it, the flood takes whatever CPU time the machine has left, and says nothing about the service. */
const delayMs = 100;

/**
 * Until the signal aborts, strangers send what is refused, over each connection 10 times a second.
 *
 * @returns how often each status has come so far; "none": the connection ended without an answer
 */
export function floodWithRefusals(
  dial: Dial,
  connections: number,
  signal: AbortSignal,
): Readonly<Record<string, number>> {
  const statuses: Record<string, number> = {};
  let requests = 0;
  for (let number = 0; number < connections; number += 1) open(number);
  return statuses;

  /** Half of the connections are used for as long as ingest lets them, the others for one request. */
  function open(number: number): void {
    if (signal.aborted) return;
    const isKept = number % 2 === 0;
    const socket = dial();
    let isAnswered = false;
    socket.setEncoding("latin1");
    socket.write(nextRequest());
    socket.on("data", (text: unknown) => {
      const status = /^HTTP\/1\.1 (\d{3})/.exec(String(text))?.[1];
      if (status === undefined) return;
      isAnswered = true;
      count(status);
      if (!isKept || signal.aborted) cutOff(socket);
      else setTimeout(() => socket.write(nextRequest()), delayMs);
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      if (!isAnswered) count("none");
      setTimeout(open, delayMs, number);
    });
  }

  function count(status: string): void {
    statuses[status] = (statuses[status] ?? 0) + 1;
  }

  function nextRequest(): string {
    requests += 1;
    if (requests % 2 === 0) return "GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n";
    const secret = String(requests).padStart(43, "x");
    const head = `POST /booking-event/create/${secret} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json`;
    return `${head}\r\nContent-Length: 2\r\n\r\n{}`;
  }
}
