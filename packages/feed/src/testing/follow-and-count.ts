/**
 * A process that follows the feed until it is killed. In the given transaction it writes down each change with the
 * process that handled it.
 */
import { follow } from "../follow.ts";

const [database = "", name = ""] = process.argv.slice(2);

await follow({
  name,
  database,
  pollIntervalMs: 100,
  signal: new AbortController().signal,
  logger: { info: () => {}, warn: () => {} },
  async onChange({ id }, { client }) {
    await client.query("insert into handled (change_id, process) values ($1, $2)", [id, process.pid]);
  },
});
