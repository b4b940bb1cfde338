import { createPool } from "@booking-events/store";
import type { Context, Pool } from "./context.ts";
import { readDatabaseSettings } from "./services/database.ts";

/** Opens a context that connects to nothing until an operation needs it. */
export function openContext(
  given: Pick<Context, "environment" | "now" | "notify">,
  { maxConnections, applicationName }: { maxConnections: number; applicationName: string },
): Context & { close: () => Promise<void> } {
  let pool: Pool | undefined;
  return {
    ...given,
    pool() {
      pool ??= createPool({
        ...readDatabaseSettings(given.environment),
        applicationName,
        maxConnections,
        // If a connection breaks, the query on it fails, which is reported.
        onError: () => {},
      });
      return pool;
    },
    close: async () => pool?.end(),
  };
}
