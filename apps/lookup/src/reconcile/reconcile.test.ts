import { once } from "node:events";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { watchTurns } from "@booking-events/harness/watch-turns";
import { expect, onTestFinished, test } from "vitest";
import { reconcile } from "./reconcile.ts";

test("in one turn of the event loop, little of the answer is written, however fast the client reads", async () => {
  const count = 50_000;
  const sources = {
    compare: async (_partner: string, listed: readonly unknown[]) =>
      listed.map(() => ({ result: "missing" as const, updatedAt: null })),
    async *readBookings() {},
  };
  let mostInATurn = () => 0;
  const server = createServer(async (req, response) => {
    const list = { req, hold() {}, mayBeEmpty: false, isShuttingDown: () => false };
    const { stream } = await reconcile(sources, "acme", list);
    mostInATurn = watchTurns(response);
    await stream(response);
    response.end();
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const sending = request({ host: "127.0.0.1", port, method: "POST" });
  sending.end(Array.from({ length: count }, (_, index) => `{"reference":"TRIP-${index}"}\n`).join(""));
  const [response] = await once(sending, "response");
  const lines = (await text(response)).trimEnd().split("\n");
  expect(lines).toHaveLength(count + 1);
  expect(JSON.parse(lines.at(-1) ?? "")).toMatchObject({ summary: { references: count, missing: count } });
  expect(mostInATurn()).toBeGreaterThan(0);
  expect(mostInATurn()).toBeLessThanOrEqual(3 * 65_536);
});
