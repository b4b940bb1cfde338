import { connect } from "node:http2";
import type { Caddy } from "@booking-events/harness/start-caddy";
import { repeat } from "@booking-events/runtime";
import type { Statuses } from "./abuse-connections.ts";

const connections = 12;
const streams = 200;
const pauseMs = 100;

/**
 * Until the signal aborts, strangers want to speak HTTP/2, and never read what they ask for. So few of them have killed
 * the proxy.
 */
export function leaveStreamsUnread({ httpsPort, authority }: Caddy, signal: AbortSignal): Statuses {
  const statuses: Record<string, number> = {};
  for (let number = 0; number < connections; number += 1) void repeat(attempt, pauseMs, signal);
  return statuses;

  async function attempt(): Promise<void> {
    const session = connect(`https://127.0.0.1:${httpsPort}`, { ca: authority, servername: "localhost" });
    const stop = () => session.destroy();
    signal.addEventListener("abort", stop);
    let isSpoken = false;
    session.once("connect", () => {
      isSpoken = true;
      for (let count = 0; count < streams; count += 1)
        session
          .request({ ":path": "/docs" })
          .on("error", () => {})
          .pause();
    });
    session.on("error", () => {});
    await new Promise<void>((resolve) => session.once("close", () => resolve()));
    signal.removeEventListener("abort", stop);
    const status = isSpoken ? "spoken" : "refused";
    if (isSpoken || !signal.aborted) statuses[status] = (statuses[status] ?? 0) + 1;
  }
}
