import pg from "pg";
import type { Queryable } from "./queryable.ts";

export const defaultSchema = "public";

/** No name that `DATABASE_SCHEMA` may have ends so, or is so long that this would not fit. */
const testSuffix = "_test_partners";

/** The schema with the tables of test partners' bookings, beside that of all others. */
export function testSchemaOf(schema: string): string {
  return `${schema}${testSuffix}`;
}

/** These limits turn a database that hangs into an error, which the caller can wait out. */
export const statementTimeoutMs = 30_000;
/**
 * For a server that can't report its own time-out, and so a little longer than that. The time runs from when a
 * statement is sent, so statements that are sent together share it.
 */
export const answerMarginMs = 5_000;
/** A frozen process must not block all others with its locks for longer than this. */
const idleInTransactionTimeoutMs = 10_000;
/**
 * PostgreSQL closes a connection whose other side takes no bytes for this long. It needs this limit as well, since a
 * transaction is not idle while PostgreSQL sends to a frozen process.
 */
const tcpUserTimeoutMs = 15_000;
/** Longer than the two limits above let a frozen process hold a lock. They act every few seconds. */
const lockTimeoutMs = 25_000;

interface TransactionLimits {
  /** The only one in which tables are looked up. Undefined: as the connection is configured. */
  schema: string;
  isolation: "read committed" | "repeatable read";
  /** 0: none. */
  statementTimeoutMs: number;
  lockTimeoutMs: number;
  idleTimeoutMs: number;
}

/**
 * Returns the statements that begin a transaction. The limits hold for it, not for the connection: PgBouncer refuses
 * them as parameters of a new connection, or ignores them if it is told to, and gives each transaction another
 * connection to the server. The isolation level does not depend on how the database is configured.
 */
export function beginWithLimits(limits: Partial<TransactionLimits> = {}): string {
  return [
    `begin isolation level ${limits.isolation ?? "read committed"}`,
    `set local statement_timeout to ${limits.statementTimeoutMs ?? statementTimeoutMs}`,
    `set local lock_timeout to ${limits.lockTimeoutMs ?? lockTimeoutMs}`,
    `set local idle_in_transaction_session_timeout to ${limits.idleTimeoutMs ?? idleInTransactionTimeoutMs}`,
    `set local tcp_user_timeout to ${tcpUserTimeoutMs}`,
    // pg reads times in no other style, and returns null or text instead.
    "set local datestyle to iso",
    ...(limits.schema === undefined ? [] : [`set local search_path to ${pg.escapeIdentifier(limits.schema)}`]),
  ].join("; ");
}

/** Sets how long later statements of the transaction wait for a lock. `default`: as at its beginning. */
export async function setLockTimeout(client: Queryable, timeoutMs: number | "default"): Promise<void> {
  await client.query(`set local lock_timeout to ${timeoutMs === "default" ? lockTimeoutMs : timeoutMs}`);
}

/**
 * Gives statements of the transaction more time, on our side too.
 *
 * @returns what they must be sent by. Others still have the time of every statement on our side
 */
export async function allowLongStatements(client: Queryable, timeoutMs: number): Promise<Queryable> {
  await client.query(`set local statement_timeout to ${timeoutMs}`);
  const query = (text: string, values?: unknown[]) =>
    client.query({ text, values, query_timeout: timeoutMs + answerMarginMs } as pg.QueryConfig);
  return { query: query as Queryable["query"] };
}
