import { createHash } from "node:crypto";
import type pg from "pg";
import { beginningOf } from "./pool.ts";
import type { Queryable } from "./queryable.ts";
import { rollBack } from "./roll-back.ts";
import { settleAll } from "./settle-all.ts";
import { transact, waitForDisk } from "./transaction.ts";

/**
 * Like {@link inTransaction}, but PostgreSQL parses each statement with values only once for a connection, and plans it
 * once in a while. For a few events, that takes it much longer than to run the statements.
 *
 * The texts of the statements stay prepared until the connection ends, so there must be few.
 *
 * Behind a pooler, nothing is prepared: the next transaction may get another connection to the server.
 *
 * @param options.isSnapshot it only reads, and sees everything as it was when it began
 */
export function inPreparedTransaction<Result>(
  pool: pg.Pool,
  work: (client: Queryable) => Promise<Result>,
  { maxPlanAgeMs = defaultPlanAgeMs, isSnapshot = false }: { maxPlanAgeMs?: number; isSnapshot?: boolean } = {},
): Promise<Result> {
  async function prepareAll(client: pg.PoolClient): Promise<Result> {
    if (!(await isDirect(client))) return work(client);
    const query = (text: string, values?: unknown[]) =>
      client.query(values === undefined ? text : { ...prepared(text), values });
    const [, , result] = await settleAll([
      discardOldPlans(client, maxPlanAgeMs),
      client.query(planForAllValues),
      work({ query: query as Queryable["query"] }),
    ]);
    return result;
  }
  const end = (client: pg.PoolClient) => (directConnections.get(client) === true ? prepared(waitForDisk) : waitForDisk);
  return transact(pool, prepareAll, end, { prepare: isDirect, isSnapshot });
}

/**
 * Runs one statement in a transaction of its own, prepared as by {@link inPreparedTransaction}. All goes to the server
 * together, so it costs one round trip.
 */
export async function queryPrepared<Row extends pg.QueryResultRow>(
  pool: pg.Pool,
  text: string,
  values: unknown[],
): Promise<pg.QueryResult<Row>> {
  const client = await pool.connect();
  try {
    const statement = (await isDirect(client)) ? { ...prepared(text), values } : { text, values };
    const [, , , result] = await settleAll([
      client.query(beginningOf(pool)),
      discardOldPlans(client, defaultPlanAgeMs),
      client.query(planForAllValues),
      client.query<Row>(statement),
      client.query("commit"),
    ]);
    client.release();
    return result;
  } catch (error) {
    await rollBack(client, error);
    throw error;
  }
}

const directConnections = new WeakMap<pg.PoolClient, boolean>();

/**
 * Finds out whether the client is connected to PostgreSQL itself. A pooler gives a client a process number of its own,
 * by which the client may cancel statements.
 */
async function isDirect(client: pg.PoolClient): Promise<boolean> {
  const known = directConnections.get(client);
  if (known !== undefined) return known;
  const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
  const isSame = rows[0]?.pid === (client as unknown as { processID: number }).processID;
  directConnections.set(client, isSame);
  return isSame;
}

const defaultPlanAgeMs = 1_000;
const plansMadeAt = new WeakMap<pg.PoolClient, number>();

/**
 * A plan that was made for small tables may read them from end to end. PostgreSQL would keep it until the tables are
 * analyzed, however large they become meanwhile.
 */
async function discardOldPlans(client: pg.PoolClient, maxPlanAgeMs: number): Promise<void> {
  const now = performance.now();
  if (now - (plansMadeAt.get(client) ?? 0) <= maxPlanAgeMs) return;
  plansMadeAt.set(client, now);
  await client.query("discard plans");
}

/**
 * Without this, PostgreSQL would plan a statement for its values whenever these exclude partitions. The plan must suit
 * tables that are empty now, and would rather be read than their indexes.
 *
 * Before PostgreSQL 18, a table without an index, such as one of a single row, then looks so expensive to read that
 * PostgreSQL would compile the statement each time that it runs.
 */
const planForAllValues =
  "set local plan_cache_mode to force_generic_plan; set local enable_seqscan to off; set local jit to off";

function prepared(text: string): { name: string; text: string } {
  return { name: nameStatement(text), text };
}

const statementNames = new Map<string, string>();

/** A name means the same text in every process, even if a pooler passes as the server and mixes up connections. */
function nameStatement(text: string): string {
  const name = statementNames.get(text) ?? createHash("sha256").update(text).digest("base64url");
  statementNames.set(text, name);
  return name;
}
