import { once } from "node:events";
import { Agent, type IncomingMessage, request } from "node:http";
import { json } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { IntegrityError, type Measurement } from "./scenario.ts";
import { quantile } from "./statistics.ts";

const stepMs = 5;
const agent = new Agent({ keepAlive: true, maxSockets: 64 });

/** Calls in even steps: autocannon would send each second's all at once, and most would wait for each other. */
export async function callEvenly<Result>(
  rate: number,
  durationMs: number,
  call: () => Promise<Result>,
): Promise<Result[]> {
  const calls: Promise<Result>[] = [];
  const startedAtMs = performance.now();
  const elapsedMs = () => performance.now() - startedAtMs;
  while (elapsedMs() < durationMs) {
    while (calls.length < (elapsedMs() / 1_000) * rate) {
      const called = call();
      // One that fails is reported at the end, with the others done.
      called.catch(() => {});
      calls.push(called);
    }
    await sleep(stepMs);
  }
  return await Promise.all(calls);
}

/**
 * By node:http, which costs a third of fetch and leaves more of the machine to what is measured. Over 64 connections at
 * the most.
 *
 * @throws IntegrityError unless the answer is 200 and says success
 */
export async function post(
  url: string,
  { body, contentType, headers }: { body: string; contentType: string; headers?: Record<string, string> },
): Promise<{ eventId?: string }> {
  const sent = request(url, { method: "POST", agent, headers: { "content-type": contentType, ...headers } });
  sent.end(body);
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  const answer = (await json(response)) as { success?: boolean; eventId?: string };
  if (response.statusCode !== 200 || !answer.success) {
    throw new IntegrityError(`An event was answered ${response.statusCode}.`);
  }
  return answer;
}

export async function timeMs(work: () => Promise<unknown>): Promise<number> {
  const startedAtMs = performance.now();
  await work();
  return performance.now() - startedAtMs;
}

export function toLatency(timesMs: number[]): Pick<Measurement, "p50Ms" | "p99Ms"> {
  return { p50Ms: quantile(timesMs, 0.5), p99Ms: quantile(timesMs, 0.99) };
}
