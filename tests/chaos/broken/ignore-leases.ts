import { ServerClient } from "@booking-events/store";
import { runWebhooks } from "@booking-events/webhooks/run-webhooks";

type Query = (...args: unknown[]) => unknown;
const prototype = ServerClient.prototype as unknown as { query: Query };
const { query } = prototype;

/** The mistake: a process delivers without asking whether another one has the lease. */
prototype.query = function queryWithoutLeases(sql, ...others) {
  return query.call(this, typeof sql === "string" ? withoutLeases(sql) : sql, ...others);
};

await runWebhooks(process.env);

function withoutLeases(sql: string): string {
  return sql
    .replaceAll(/and (?:\w+\.)?active_id = (?:\w+\.token|\$2)/g, "")
    .replace("active_id as holder", "null as holder")
    .replace("and active_id is not distinct from holder", "")
    .replace("and (active_id is null or reader.seen_at::text = seen.seen_at)", "");
}
