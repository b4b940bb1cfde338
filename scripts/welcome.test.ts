import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { SetupProblem } from "./setup-problem.ts";
import { tryDemoBooking } from "./welcome.ts";

const notStopped = new AbortController().signal;

test("a start waits while ingest cannot accept events yet", async () => {
  const statuses = [503, 503, 200];
  const url = await answerWith(() => statuses.shift() ?? 500);
  await tryDemoBooking(url, "secret", notStopped);
  expect(statuses).toEqual([]);
});

test("a start ends at once if waiting cannot help, with what ingest answered", async () => {
  const statuses = [403, 200];
  const url = await answerWith(() => statuses.shift() ?? 500);
  const attempt = tryDemoBooking(url, "secret", notStopped);
  await expect(attempt).rejects.toThrow(SetupProblem);
  await expect(attempt).rejects.toThrow(/not accepted: 403 \{"message"/);
  expect(statuses).toEqual([200]);
});

async function answerWith(nextStatus: () => number): Promise<string> {
  const server = createServer((_, response) => {
    response.statusCode = nextStatus();
    response.end(JSON.stringify({ message: "…" }));
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
