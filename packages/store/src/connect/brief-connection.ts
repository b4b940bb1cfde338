import type { Queryable } from "./queryable.ts";
import { ServerClient } from "./server-client.ts";
import { beginWithLimits } from "./transaction-limits.ts";

const connectTimeoutMs = 2_000;
const statementTimeoutMs = 3_000;
/** For a server that does not answer at all. */
const answerTimeoutMs = statementTimeoutMs + 1_000;

export interface DatabaseLocation {
  databaseUrl: string;
  schema: string;
}

/**
 * Runs read-only queries on one snapshot, on a connection of its own. Each fails after some seconds, also if PostgreSQL
 * is frozen.
 */
export async function withBriefConnection<Result>(
  { databaseUrl, schema }: DatabaseLocation,
  applicationName: string,
  read: (client: Queryable) => Promise<Result>,
): Promise<Result> {
  const client = new ServerClient({
    connectionString: databaseUrl,
    application_name: applicationName,
    connectionTimeoutMillis: connectTimeoutMs,
    query_timeout: answerTimeoutMs,
  });
  // The query fails with the same error.
  client.on("error", () => {});
  try {
    await client.connect();
    await client.query(
      `${beginWithLimits({ schema, isolation: "repeatable read", statementTimeoutMs })}; set transaction read only`,
    );
    return await read(client);
  } finally {
    // Closes the connection of a query that has failed at once. Nothing has to be rolled back.
    client.end().catch(() => {});
  }
}
