import type pg from "pg";
import type { Queryable } from "../connect/queryable.ts";
import { inTransaction } from "../connect/transaction.ts";

/**
 * Counts the pages that PostgreSQL reads for the queries of `work`, in a transaction like the worker's. Of a statement that
 * writes, those that it reads to find its rows: what it takes to store them depends on where there is room.
 */
export async function countPages(pool: pg.Pool, work: (client: Queryable) => Promise<unknown>): Promise<number> {
  let pages = 0;
  await inTransaction(pool, (client) => {
    const explaining = {
      async query(text: string, values: unknown[]) {
        const { rows } = await client.query(`explain (analyze, buffers, format json) ${text}`, values);
        const { Plan: plan } = rows[0]["QUERY PLAN"][0];
        const reading = plan["Node Type"] === "ModifyTable" ? plan.Plans : [plan];
        for (const node of reading) pages += node["Shared Hit Blocks"] + node["Shared Read Blocks"];
        return client.query(text, values);
      },
    };
    return work(explaining as unknown as Queryable);
  });
  return pages;
}
