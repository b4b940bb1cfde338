/** A process that holds as many events as it may, and prints their number, until it is killed. */
import { createConsumer } from "../take/consumer.ts";

const [redisServers = "", prefix = "", concurrency = ""] = process.argv.slice(2);
let held = 0;
const consumer = createConsumer({
  redisServers,
  prefix,
  concurrency: Number(concurrency),
  maxHeldBytes: Number.MAX_SAFE_INTEGER,
  onError: () => {},
  recovery: { lockDurationMs: 2_000, stalledCheckIntervalMs: 200 },
  handle: () => {
    held += 1;
    process.stdout.write(`${held}\n`);
    return new Promise(() => {});
  },
});
consumer.start("a database");
