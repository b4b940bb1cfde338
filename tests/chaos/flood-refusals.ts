import { connect } from "node:net";
import { fileURLToPath } from "node:url";
import { parentPort, Worker, workerData } from "node:worker_threads";

interface FloodOptions {
  ports: readonly number[];
  connections: number;
}

/** Without it, the flood takes whatever CPU time the machine has left, and says nothing about the service. */
const delayMs = 100;

/**
 * Strangers send what is refused, over each connection 10 times a second. They have a thread of their own: this one
 * measures.
 */
export function startFlood(options: FloodOptions) {
  const thread = new Worker(fileURLToPath(import.meta.url), { workerData: { flood: options } });
  const counted = new Promise<Record<string, number>>((resolve, reject) => {
    thread.once("message", resolve);
    thread.once("error", reject);
  });
  // `stop` reports a failure.
  counted.catch(() => {});
  return {
    /** Resolves to how often each status came; "none": the connection ended without an answer. */
    async stop(): Promise<Record<string, number>> {
      thread.postMessage("stop");
      return await counted.finally(() => thread.terminate());
    },
    /** Ends it without a result, if it has not ended yet. */
    end: () => thread.terminate(),
  };
}

// Tests may run in threads as well, with data of their own.
if (parentPort !== null && workerData?.flood !== undefined) {
  const statuses = flood(workerData.flood);
  parentPort.once("message", () => parentPort?.postMessage(statuses));
}

function flood({ ports, connections }: FloodOptions): Record<string, number> {
  const statuses: Record<string, number> = {};
  let requests = 0;
  const count = (status: string) => {
    statuses[status] = (statuses[status] ?? 0) + 1;
  };
  for (let number = 0; number < connections; number += 1) open(number);
  return statuses;

  /** Half of the connections are used for as long as ingest lets them, the others for one request. */
  function open(number: number): void {
    const isKept = number % 2 === 0;
    const socket = connect(ports[(number >> 1) % ports.length] ?? 0, "127.0.0.1");
    let isAnswered = false;
    socket.setEncoding("latin1");
    socket.on("connect", () => socket.write(nextRequest()));
    socket.on("data", (text: unknown) => {
      const status = /^HTTP\/1\.1 (\d{3})/.exec(String(text))?.[1];
      if (status === undefined) return;
      isAnswered = true;
      count(status);
      if (isKept) setTimeout(() => socket.write(nextRequest()), delayMs);
      // A connection that is closed in good order keeps its port for a minute: soon there would be none left.
      else socket.resetAndDestroy();
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      if (!isAnswered) count("none");
      setTimeout(open, delayMs, number);
    });
  }

  function nextRequest(): string {
    requests += 1;
    if (requests % 2 === 0) return "GET /x HTTP/1.1\r\nHost: ingest\r\n\r\n";
    const secret = String(requests).padStart(43, "x");
    const head = `POST /booking-event/create/${secret} HTTP/1.1\r\nHost: ingest\r\nContent-Type: application/json`;
    return `${head}\r\nContent-Length: 2\r\n\r\n{}`;
  }
}
