import { redisUrl, uniquePrefix } from "@booking-events/harness";
import { expect, test } from "vitest";
import { checkIngest } from "./check-ingest.ts";

const run = (connections: number, more: { entry?: string[]; answerLimitMs?: number } = {}) =>
  checkIngest({
    redisUrl: redisUrl(),
    queuePrefix: uniquePrefix(),
    connections,
    seed: 20_261_121,
    ...more,
  });

test("whatever a connection sends, ingest answers or closes it, and works as before", async () => {
  const statuses = await run(700);
  // Requests got to every stage.
  expect([...statuses.keys()].sort()).toEqual(
    expect.arrayContaining(["200", "400", "403", "404", "405", "413", "415", "422", "431"]),
  );
});

test.each([
  ["throws", /Answered 500\. Seed \d+, .* to these bytes:\n"/s],
  ["hangs", /No end of the answer/],
  ["dies", /It was gone after these connections:\n.*CONNECT .*, and a reset at /s],
  ["believes", /Answered 200\. Seed \d+, .* to these bytes:\n"/s],
  ["prints", /a line that it must not have: .*canary/],
])("finds the mistake of a server that %s", async (mistake, message) => {
  const entry = ["tests/fuzz/careless-server.ts", mistake];
  const more = mistake === "hangs" ? { entry, answerLimitMs: 500 } : { entry };
  await expect(run(400, more)).rejects.toThrow(message);
});
