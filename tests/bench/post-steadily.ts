import { Agent, type IncomingMessage, request } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import type { Load } from "./load.ts";
import { timeMs, toLatency } from "./statistics.ts";

/** A partner that posts at a fixed rate, however long the answers take. */
export interface SteadyPartner {
  post(durationMs: number): Promise<{ acceptedPerSecond: number; p50Ms: number; p99Ms: number }>;
  close(): void;
}

/**
 * Opens the connections. What is not accepted counts as answered too, since it may be sent again.
 *
 * @param load.connections how many are kept open; 0: each request gets a new one
 */
export async function openSteadyPartner(load: Omit<Load, "durationMs"> & { rate: number }): Promise<SteadyPartner> {
  const { connections, rate } = load;
  const agent = new Agent(connections === 0 ? {} : { keepAlive: true, maxSockets: connections });
  await Promise.all(Array.from({ length: connections }, () => postOnce(load, agent)));
  return {
    async post(durationMs) {
      let accepted = 0;
      const startedAtMs = performance.now();
      const posts: Promise<number>[] = [];
      for (let i = 0; i < (durationMs / 1_000) * rate; i += 1) {
        await delay(Math.max(0, startedAtMs + (i * 1_000) / rate - performance.now()));
        posts.push(
          timeMs(async () => {
            if ((await postOnce(load, agent)) === 200) accepted += 1;
          }),
        );
      }
      return { ...toLatency(await Promise.all(posts)), acceptedPerSecond: accepted / (durationMs / 1_000) };
    },
    close: () => agent.destroy(),
  };
}

/** @returns the status of the answer, or undefined if the connection broke */
function postOnce({ url, body, contentType }: Pick<Load, "url" | "body" | "contentType">, agent: Agent) {
  return new Promise<number | undefined>((resolve) => {
    const post = request(url, { method: "POST", agent, headers: { "Content-Type": contentType } });
    post.on("error", () => resolve(undefined));
    post.on("response", (answer: IncomingMessage) => answer.resume().on("end", () => resolve(answer.statusCode)));
    post.end(body);
  });
}
