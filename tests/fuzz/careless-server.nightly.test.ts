import { redisUrl, uniquePrefix } from "@booking-events/harness";
import { expect, test } from "vitest";
import { checkIngest } from "./check-ingest.ts";

test.each([
  ["throws", /Answered 500\. Seed \d+, .* to these bytes:\n"/s],
  ["hangs", /No end of the answer/],
  ["dies", /It was gone after these connections:\n.*CONNECT .*, and a reset at /s],
  ["believes", /Answered 200\. Seed \d+, .* to these bytes:\n"/s],
  ["prints", /a line that it must not have: .*canary/],
])("fuzzing finds the mistake of a server that %s", async (mistake, message) => {
  const fuzzing = checkIngest({
    redisUrl: redisUrl(),
    queuePrefix: uniquePrefix(),
    connections: 400,
    seed: 20_261_121,
    entry: ["tests/fuzz/careless-server.ts", mistake],
    ...(mistake === "hangs" && { answerLimitMs: 500 }),
  });
  await expect(fuzzing).rejects.toThrow(message);
});
