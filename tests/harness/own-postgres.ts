import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { choosePostgresHome } from "@booking-events/scripts/postgres-home";
import { type PostgresServer, startPostgres } from "@booking-events/scripts/services";
import { copyCluster } from "./base-backup.ts";
import { provided } from "./provided.ts";

/**
 * Starts a PostgreSQL of the test's own, as `startPostgres` does. Its cluster is a copy of one that the run has created:
 * to create another takes more than a second of CPU.
 */
export async function startOwnPostgres(options: Parameters<typeof startPostgres>[0]): Promise<PostgresServer> {
  const { data, password } = provided("postgresCluster");
  mkdirSync(options.dir, { recursive: true });
  writeFileSync(join(options.dir, "password"), password, { mode: 0o600 });
  await copyCluster(data, join((await choosePostgresHome(options.dir)).dir, "data"));
  return startPostgres(options);
}
