import { connect } from "node:net";
import { fileURLToPath } from "node:url";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";

/** Strangers who send what is refused, each connection 10 times a second. */
export interface Flood {
  /** Resolves to how often each status came; "none": the connection ended without an answer. */
  stop(): Promise<Map<string, number>>;
  /** Ends it without a result, if it has not ended yet. */
  end(): Promise<unknown>;
}

interface FloodOptions {
  ports: readonly number[];
  connections: number;
}

/** Without it, the flood takes whatever CPU time the machine has left, and says nothing about the service. */
const delayMs = 100;

/** In a thread of its own, so that it is not in the way of what is measured here. */
export function startFlood(options: FloodOptions): Flood {
  const thread = new Worker(fileURLToPath(import.meta.url), { workerData: options });
  const counted = new Promise<Map<string, number>>((resolve, reject) => {
    thread.once("message", resolve);
    thread.once("error", reject);
  });
  // One that fails is reported by `stop`.
  counted.catch(() => {});
  return {
    async stop() {
      thread.postMessage("stop");
      const statuses = await counted;
      await thread.terminate();
      return statuses;
    },
    end: () => thread.terminate(),
  };
}

if (!isMainThread && parentPort !== null && isFloodOptions(workerData)) {
  const { ports, connections } = workerData;
  const port = parentPort;
  const statuses = flood(ports, connections);
  port.once("message", () => port.postMessage(statuses));
}

/** Tests may run in threads, which have data of their own. */
function isFloodOptions(data: unknown): data is FloodOptions {
  return typeof data === "object" && data !== null && "ports" in data && "connections" in data;
}

function flood(ports: readonly number[], connections: number): Map<string, number> {
  const statuses = new Map<string, number>();
  let requests = 0;
  const count = (status: string) => statuses.set(status, (statuses.get(status) ?? 0) + 1);
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
      // Closed in good order, each would keep its port for a minute, and soon there would be none left.
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
