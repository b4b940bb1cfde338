import { redisUrl, uniquePrefix } from "@booking-events/harness";
import { expect, test } from "vitest";
import { checkIngest } from "./check-ingest.ts";

test("whatever a connection sends, ingest answers or closes it, and works as before", async () => {
  const statuses = await checkIngest({
    redisUrl: redisUrl(),
    queuePrefix: uniquePrefix(),
    connections: Number(process.env["FUZZ_CONNECTIONS"] ?? 350),
    seed: 20_261_121,
  });
  // Requests got to every stage.
  expect([...statuses.keys()].sort()).toEqual(
    expect.arrayContaining(["200", "400", "403", "404", "405", "413", "415", "422", "431"]),
  );
});
