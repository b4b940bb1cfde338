import pg from "pg";

/** Runs one statement on a connection of its own, outside a transaction, such as `vacuum`. */
export async function execute(url: string, sql: string): Promise<pg.QueryResult> {
  const client = new pg.Client({ connectionString: url });
  // If the server ends meanwhile, the statement fails as well. Without a listener, this would end the process.
  client.on("error", () => {});
  await client.connect();
  try {
    return await client.query(sql);
  } finally {
    await client.end();
  }
}
