import { adviseOnDatabase, parseEnvironment, splitHosts, variables } from "@booking-events/runtime";
import { inPreparedTransaction, inTransaction, NotBegun, type Queryable, readOneSnapshot } from "@booking-events/store";
import type { Context, Pool } from "../context.ts";
import { OperationFailure } from "../operation-failure.ts";

/** The SQLSTATE of a statement that took too long. */
const queryCanceled = "57014";

/**
 * Runs read-only queries on one snapshot of the database.
 *
 * @throws OperationFailure if the database can't be reached, or has no tables yet
 */
export async function readDatabase<Result>(
  context: Context,
  read: (client: Queryable) => Promise<Result>,
): Promise<Result> {
  return withDatabase(context, (pool) => readSnapshot(pool, read));
}

export async function readSnapshot<Result>(pool: Pool, read: (client: Queryable) => Promise<Result>): Promise<Result> {
  return inTransaction(pool, async (client) => {
    await client.query(readOneSnapshot);
    return read(client);
  });
}

const planAgeMs = 10 * 60_000;

/**
 * As {@link readDatabase}, for queries by a booking's key or an event's id: they are planned once in a while, since over
 * all months of the log that takes PostgreSQL several times as long as to run them.
 */
export async function readPrepared<Result>(
  context: Context,
  read: (client: Queryable) => Promise<Result>,
): Promise<Result> {
  return withDatabase(context, (pool) =>
    inPreparedTransaction(pool, read, { maxPlanAgeMs: planAgeMs, isSnapshot: true }),
  );
}

/**
 * Runs queries that are independent of each other.
 *
 * @throws OperationFailure if the database can't be reached, or has no tables yet
 */
export async function withDatabase<Result>(context: Context, work: (pool: Pool) => Promise<Result>): Promise<Result> {
  const pool = context.pool(context.isTest);
  try {
    return await work(pool);
  } catch (error) {
    throw describeDatabaseError(error, readDatabaseSettings(context.environment));
  }
}

export interface DatabaseSettings {
  databaseUrl: string;
  schema: string;
}

export function readDatabaseSettings(environment: Context["environment"]): DatabaseSettings {
  const { DATABASE_URL, DATABASE_SCHEMA } = variables;
  const settings = parseEnvironment({ DATABASE_URL, DATABASE_SCHEMA }, environment);
  return { databaseUrl: settings.DATABASE_URL, schema: settings.DATABASE_SCHEMA };
}

export function readStandbysToConfirm(environment: Context["environment"]): number {
  const { DATABASE_STANDBYS_TO_CONFIRM } = variables;
  return parseEnvironment({ DATABASE_STANDBYS_TO_CONFIRM }, environment).DATABASE_STANDBYS_TO_CONFIRM;
}

/**
 * @returns a sentence for the operator, without the URL's password. An error of another origin is returned unchanged
 */
export function describeDatabaseError(error: unknown, database: DatabaseSettings): unknown {
  const { databaseUrl, schema } = database;
  if (!(error instanceof Error)) return error;
  if (error instanceof NotBegun) return describeDatabaseError(error.cause, database);
  const { code, severity } = error as { code?: unknown; severity?: unknown };
  const hosts = splitHosts(databaseUrl).map((url) => new URL(url).host);
  const where = hosts.join(" or ") || "the local socket";
  if (typeof code === "string" && severity !== undefined) {
    return new OperationFailure(describeSqlState(code, error.message, { where, schema }), { cause: error });
  }
  if (typeof code !== "string" && error.constructor !== Error) return error;
  // The driver's errors have no code, and say what happened to the connection.
  const [what, advice] = typeof code === "string" ? [code, adviseOnDatabase(code)] : describeDriverError(error.message);
  return new OperationFailure(`PostgreSQL at ${where} can't be reached (${what}). ${advice}`, { cause: error });
}

function describeDriverError(message: string): [what: string, advice: string] {
  if (message.includes("client password must be"))
    return ["it demands a password", "Set it in DATABASE_URL or DATABASE_PASSWORD."];
  if (message.includes("does not support SSL"))
    return ["it does not speak TLS", "Switch ssl on in PostgreSQL, or leave sslmode out of DATABASE_URL."];
  return [message, adviseOnDatabase(null)];
}

/** @param error as {@link describeDatabaseError} returns it */
export function hasTakenTooLong(error: unknown): boolean {
  return error instanceof OperationFailure && (error.cause as { code?: unknown } | undefined)?.code === queryCanceled;
}

function describeSqlState(code: string, message: string, { where, schema }: { where: string; schema: string }): string {
  switch (code) {
    case queryCanceled:
      return `PostgreSQL at ${where} ended the query, since it took too long (${code}).`;
    case "28000":
    case "28P01":
    case "3D000":
    case "53300":
    case "57P03":
      return `PostgreSQL at ${where} refuses: "${message}" (${code}). ${adviseOnDatabase(code)}`;
    case "42P01":
    case "42703":
      return `The schema ${schema} has not been migrated to this release (${code}). Run: ops migrate`;
  }
  // Messages of these two classes repeat data.
  const isAboutData = code.startsWith("22") || code.startsWith("23");
  return `PostgreSQL at ${where} refused the query (${isAboutData ? code : `${code}: ${message}`}).`;
}
