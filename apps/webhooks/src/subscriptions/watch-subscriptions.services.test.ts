import { waitFor } from "@booking-events/harness";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { createLogger } from "@booking-events/runtime";
import { afterEach, expect, test } from "vitest";
import { watchSubscriptions } from "./watch-subscriptions.ts";

const { pool, url } = useTestDatabase();
const logger = createLogger({ name: "test", level: "silent" });
/** Longer than a test takes. */
const neverMs = 1_000_000;
let stopping = new AbortController();

afterEach(() => stopping.abort());

function watch(pollIntervalMs: number) {
  stopping = new AbortController();
  let looks = 0;
  const ended = watchSubscriptions({
    ...{ databaseUrl: url, schema: "public", logger, signal: stopping.signal, pollIntervalMs },
    look: async () => {
      looks += 1;
    },
  });
  return { looks: () => looks, ended };
}

const write = () =>
  pool.query(
    `insert into subscriptions (name, payload, token_sha256, from_id, created_by)
     values (gen_random_uuid()::text, 'thin', sha256(uuid_send(gen_random_uuid())), 0, 'Ada')`,
  );

async function untilListening(): Promise<void> {
  await waitFor(async () => {
    const { rows } = await pool.query(
      "select from pg_stat_activity where query like 'listen%' and datname = current_database()",
    );
    expect(rows).toHaveLength(1);
  });
}

test("it looks at the start, when it begins to listen, and at each change", async () => {
  const { looks, ended } = watch(neverMs);
  await waitFor(() => expect(looks()).toBe(2));
  await write();
  await waitFor(() => expect(looks()).toBe(3));
  await pool.query("update subscriptions set paused_at = now()");
  await waitFor(() => expect(looks()).toBe(4));
  stopping.abort();
  await ended;
  await write();
  expect(looks()).toBe(4);
});

test("it looks regularly, and listens again when its connection breaks", async () => {
  const { looks } = watch(20);
  await untilListening();
  await pool.query(
    "select pg_terminate_backend(pid) from pg_stat_activity where query like 'listen%' and datname = current_database()",
  );
  const before = looks();
  await waitFor(() => expect(looks()).toBeGreaterThan(before + 2));
  await untilListening();
});
