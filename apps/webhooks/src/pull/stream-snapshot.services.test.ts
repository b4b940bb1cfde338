import { once } from "node:events";
import { createServer, get, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { FeedOfBookings } from "@booking-events/feed/testing/feed-of-bookings";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { insertSubscription, listPullSubscriptions, type PullSubscription } from "@booking-events/store";
import { afterEach, beforeAll, expect, test } from "vitest";
import { Snapshots, snapshotLimits } from "./stream-snapshot.ts";

const { pool } = useTestDatabase({ maxConnections: 4 });
const bookings = 250;

let subscription: PullSubscription;
let isStopping = false;
let server: Server;

beforeAll(async () => {
  await insertSubscription(pool, {
    ...{ name: "warehouse", url: null, mode: null, payload: "full", signature: null, signingKey: null },
    ...{ partners: null, changes: null, countries: null, arrivalFromDays: null, arrivalToDays: null },
    ...{ tokenSha256: Buffer.alloc(32), createdBy: "Ada" },
  });
  const [added] = await listPullSubscriptions(pool);
  subscription = added as PullSubscription;
  const feed = new FeedOfBookings(pool);
  for (let number = 1; number <= bookings; number += 1) await feed.save(`T-${number}`, { note: "x".repeat(60_000) });
});

afterEach(() => {
  isStopping = false;
  server.closeAllConnections();
  server.close();
});

/** @returns how many lines arrived, or what ended the answer before its end */
async function readSlowly(
  limits: typeof snapshotLimits,
  pauseMs: number,
  onChunk = () => {},
): Promise<number | string> {
  const snapshots = new Snapshots({ database: pool, schema: "public", isStopping: () => isStopping, limits });
  // As for an error after the headers in create-pull.ts.
  server = createServer((_, response) => void snapshots.stream(subscription, response).catch(() => response.destroy()));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const [response] = (await once(get({ port }), "response")) as [IncomingMessage];
  let lines = 0;
  try {
    for await (const chunk of response) {
      lines += chunk.toString().split("\n").length - 1;
      onChunk();
      await sleep(pauseMs);
    }
    return lines;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? "unknown";
  }
}

test("a subscriber with a slow link gets all, as long as it takes a booking in time", async () => {
  expect(await readSlowly({ ...snapshotLimits, drainTimeoutMs: 1_500 }, 40)).toBe(1 + bookings);
});

test("a subscriber that reads for longer than a whole may take is cut off, and others get their turn", async () => {
  expect(await readSlowly({ ...snapshotLimits, longestMs: 1_000 }, 40)).toBe("ECONNRESET");
});

test("a stop cuts it off", async () => {
  expect(await readSlowly(snapshotLimits, 0, () => (isStopping = true))).toBe("ECONNRESET");
});
