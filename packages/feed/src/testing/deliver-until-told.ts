/** A process that delivers until SIGTERM, with a transaction for each delivery. */
import { deliver } from "../deliver/deliver.ts";

const [database = "", name = ""] = process.argv.slice(2);
const stopping = new AbortController();
process.once("SIGTERM", () => stopping.abort());

await deliver({
  name,
  database,
  signal: stopping.signal,
  logger: { info: () => {}, warn: () => {} },
  async handle(_, { client }) {
    await client.query("select");
  },
});
