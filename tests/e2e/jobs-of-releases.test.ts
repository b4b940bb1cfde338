import { waitFor } from "@booking-events/harness";
import { queueName } from "@booking-events/queue";
import { Redis } from "ioredis";
import { expect, test } from "vitest";
import releases from "./jobs-of-releases.json" with { type: "json" };
import { prepareSurroundings } from "./surroundings.ts";

/**
 * What the ingests of releases have written to Redis, as `HGETALL` shows it. A release that writes something else adds
 * its own; none is ever changed, because such events may be in the queue when workers are replaced.
 */
const surroundings = prepareSurroundings("a-secret-of-the-recorded-jobs-0123456789");

test.each(releases)("a worker applies what the ingest of a release has written: $release", async ({ jobs }) => {
  const { environment, pool } = surroundings();
  const keyOf = (name: string) => `${environment["QUEUE_PREFIX"]}:${queueName}:${name}`;
  const redis = new Redis(environment["REDIS_URL"] ?? "");
  for (const { id, fields } of jobs) {
    await redis.multi().hset(keyOf(id), fields).lpush(keyOf("wait"), id).zadd(keyOf("marker"), 0, "0").exec();
  }
  await surroundings().start("worker");
  await waitFor(async () => (await redis.exists(...jobs.map(({ id }) => keyOf(id)))) === 0);
  redis.disconnect();

  const { rows } = await pool.query(
    `select id, kind, partner, idempotency_key as key, secret_id as secret, received_at as "receivedAt", payload, outcome
     from booking_events order by sequence`,
  );
  const expected = jobs.map(({ id, fields }, index) => {
    const { kind, partner, idempotencyKey: key, secretId = null, receivedAt, payload } = JSON.parse(fields.data);
    const outcome = ["created", "created", "deleted"][index];
    return { id, kind, partner, key, secret: secretId, receivedAt: new Date(receivedAt), payload, outcome };
  });
  expect(rows).toEqual(expected);
});
