import { ServerClient } from "./server-client.ts";

const connectTimeoutMs = 5_000;

/** Runs `work` on a connection of its own, whose statements have no limit but those that they set. */
export async function withOwnConnection<Result>(
  databaseUrl: string,
  applicationName: string,
  work: (client: ServerClient) => Promise<Result>,
): Promise<Result> {
  const client = new ServerClient({
    connectionString: databaseUrl,
    application_name: applicationName,
    connectionTimeoutMillis: connectTimeoutMs,
    keepAlive: true,
  });
  // If the connection breaks, the current query fails. Without a listener the process would end too.
  client.on("error", () => {});
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
