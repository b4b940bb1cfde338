import { createPool, testSchemaOf } from "@booking-events/store";
import type { Context, Pool } from "./context.ts";
import { readDatabaseSettings } from "./services/database.ts";

/** Opens a context that connects to nothing until an operation needs it. */
export function openContext(
  given: Pick<Context, "environment" | "now" | "notify">,
  { maxConnections, applicationName }: { maxConnections: number; applicationName: string },
): Context & { close: () => Promise<void> } {
  const pools = new Map<boolean, Pool>();
  return {
    ...given,
    pool(isTest = false) {
      const pool = pools.get(isTest) ?? open(isTest);
      pools.set(isTest, pool);
      return pool;
    },
    close: async () => void (await Promise.all([...pools.values()].map((pool) => pool.end()))),
  };

  function open(isTest: boolean): Pool {
    const { databaseUrl, schema } = readDatabaseSettings(given.environment);
    return createPool({
      databaseUrl,
      schema: isTest ? testSchemaOf(schema) : schema,
      applicationName,
      maxConnections,
      // If a connection breaks, the query on it fails, which is reported.
      onError: () => {},
    });
  }
}
