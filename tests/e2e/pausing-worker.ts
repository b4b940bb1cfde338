/**
 * The real worker, with parts that can pause: PAUSE_AT is `before-transaction`, `before-commit` or `after-commit`. A
 * test then ends it with `kill -9`.
 */

import { createConsumer } from "@booking-events/queue";
import { createPool } from "@booking-events/store";
import { applyEvents } from "@booking-events/worker/apply/apply-events";
import { runWorker } from "@booking-events/worker/run-worker";
import { pauseAt } from "./pause-at.ts";

await runWorker(process.env, {
  async applyEvents(...args) {
    await pauseAt("before-transaction");
    const outcomes = await applyEvents(...args);
    await pauseAt("after-commit");
    return outcomes;
  },
  createPool(options) {
    const pool = createPool(options);
    pool.on("connect", (client) => {
      const query = client.query.bind(client) as (...args: unknown[]) => unknown;
      let hasWritten = false;
      const pausingQuery = async (...args: unknown[]) => {
        const [statement] = args as [string | { text: string }];
        const text = typeof statement === "string" ? statement : statement.text;
        if (text === "commit" && hasWritten) await pauseAt("before-commit");
        hasWritten = text !== "commit" && (hasWritten || text.startsWith("insert into booking_events"));
        return query(...args);
      };
      client.query = pausingQuery as typeof client.query;
    });
    return pool;
  },
  // Short, so another worker takes over soon.
  createConsumer: (options) =>
    createConsumer({ ...options, recovery: { lockDurationMs: 1_500, stalledCheckIntervalMs: 500 } }),
});
