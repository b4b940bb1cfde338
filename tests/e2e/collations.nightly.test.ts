import { expect, test } from "vitest";
import { useOwnServices } from "./surroundings.ts";

const own = useOwnServices("a-secret-of-the-collation-tests-0123456");

test("a worker and a lookup say that the C library under PostgreSQL has changed, and are ready all the same", async () => {
  await own.pool.query("update pg_database set datcollversion = '2.31' where datname = current_database()");
  const worker = await own.start("worker");
  const lookup = await own.start("lookup");
  for (const app of [worker, lookup]) {
    await expect
      .poll(() => app.readiness(), { timeout: 20_000 })
      .toMatchObject({
        status: 200,
        body: {
          warnings: [
            expect.stringMatching(
              /^Indexes may miss rows: the database "booking_events" has version 2\.31 .* See "After an upgrade of PostgreSQL"/,
            ),
          ],
        },
      });
  }
});
