/**
 * Our worker, which writes one of its tables twice, so that the difference is what writing it once costs: TWICE is the
 * table's name. The second one, `<table>_again`, is to be there.
 */
import { createPool } from "@booking-events/store";
import { runWorker } from "@booking-events/worker/run-worker";

const insertion = `insert into ${process.env["TWICE"]} `;

await runWorker(process.env, {
  createPool(options) {
    const pool = createPool(options);
    pool.on("connect", (client) => {
      const query = client.query.bind(client) as (...args: unknown[]) => Promise<unknown>;
      client.query = (async (text: unknown, ...rest: unknown[]) => {
        if (typeof text === "string" && text.startsWith(insertion)) {
          await query(text.replace(insertion, insertion.replace(/ $/, "_again ")), ...rest);
        }
        return query(text, ...rest);
      }) as typeof client.query;
    });
    return pool;
  },
});
