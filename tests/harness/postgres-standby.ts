import { appendFileSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { choosePostgresHome } from "@booking-events/scripts/postgres-home";
import { type PostgresServer, startPostgres } from "@booking-events/scripts/services";
import { takeBaseBackup, writeToCluster } from "./base-backup.ts";
import { execute } from "./execute.ts";
import { waitFor } from "./wait-for.ts";

export interface PostgresStandby extends PostgresServer {
  /** Makes it a primary. It has no synchronous standby then. */
  promote(): Promise<void>;
}

/**
 * Copies a primary, and starts the copy as a hot standby that replicates from it. From then on, each commit waits for it.
 *
 * @param options.primary a server of `startPostgres`
 * @param options.dir holds the standby's data
 * @param options.name the standby's `application_name`, a word in lower case
 * @param options.replicationPort where the standby finds its primary. Default: the primary's own port
 */
export async function startPostgresStandby(options: {
  primary: PostgresServer;
  dir: string;
  name?: string;
  replicationPort?: number;
}): Promise<PostgresStandby> {
  const { primary, dir, name = "standby", replicationPort = primary.port } = options;
  mkdirSync(dir, { recursive: true });
  const { password } = new URL(primary.url);
  // The copy has the primary's roles.
  writeFileSync(join(dir, "password"), password, { mode: 0o600 });
  const data = join((await choosePostgresHome(dir)).dir, "data");
  // Keeps the WAL that the standby needs, however long it is away.
  await execute(primary.url, `select pg_create_physical_replication_slot('${name}', true)`);
  await takeBaseBackup(primary.url, join(primary.home, "data"), data);
  writeToCluster(data, "standby.signal", "");
  const connection = `host=127.0.0.1 port=${replicationPort} user=postgres password=${password} application_name=${name}`;
  const replication = { primary_conninfo: connection, primary_slot_name: name };
  for (const [setting, value] of Object.entries(replication))
    appendFileSync(join(data, "postgresql.auto.conf"), `${setting} = '${value}'\n`);
  const standby = await startPostgres({ dir });
  await waitForInCommits(primary.url, name);
  return Object.assign(standby, { promote: async () => void (await execute(standby.url, "select pg_promote()")) });
}

/** Ends servers whose data nobody needs any more. */
export function discard(...servers: PostgresServer[]): void {
  for (const server of servers) {
    server.kill("SIGKILL");
    rmSync(server.home, { recursive: true, force: true });
  }
}

/** Set after the copy, so that the standby does not wait for itself when it is promoted. */
async function waitForInCommits(primaryUrl: string, name: string): Promise<void> {
  await execute(primaryUrl, `alter system set synchronous_standby_names = '${name}'`);
  await execute(primaryUrl, "select pg_reload_conf()");
  await waitFor(async () => {
    const { rowCount } = await execute(primaryUrl, "select from pg_stat_replication where sync_state = 'sync'");
    return rowCount === 1;
  });
}
