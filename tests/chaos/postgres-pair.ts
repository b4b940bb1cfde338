import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { clients, everybody, type Network } from "@booking-events/harness/network";
import { type PostgresStandby, startPostgresStandby } from "@booking-events/harness/postgres-standby";
import { waitFor } from "@booking-events/harness/wait-for";
import { type PostgresServer, startPostgres } from "@booking-events/scripts/services";
import pg from "pg";
import type { Chances, MachineFault } from "./machine-faults.ts";

const machines = ["postgres-1", "postgres-2"] as const;
type Machine = (typeof machines)[number];

/** Until somebody, or something, has noticed that the primary is gone. */
const decisionMs = { least: 500, most: 1_500 };
const settledTimeoutMs = 60_000;

/** A primary, and a standby that each commit waits for. The apps reach both through the network. */
export async function startPostgresPair({ dir, network }: { dir: string; network: Network }) {
  await using started = new AsyncDisposableStack();
  let running = started;
  const servers = new Map<Machine, PostgresServer>();
  const serverOf = (machine: Machine) => servers.get(machine) as PostgresServer;
  let primary: Machine = "postgres-1";
  let standby: Machine = "postgres-2";
  let copies = 0;
  const first = await startPostgres({ dir: join(dir, "postgres-0") });
  servers.set(primary, first);
  running.defer(first.stop);

  async function addStandby(): Promise<PostgresStandby> {
    copies += 1;
    const from = serverOf(primary);
    const added = await startPostgresStandby({
      primary: from,
      dir: join(dir, `postgres-${copies}`),
      name: `copy_${copies}`,
      replicationPort: await network.expose(primary, from.port, standby),
    });
    running.defer(added.stop);
    servers.set(standby, added);
    return added;
  }
  let replica = await addStandby();

  const ports = [];
  for (const machine of machines) ports.push(await network.expose(machine, () => serverOf(machine).port));
  // Who checks the service looks past the network, into the one that is the primary now.
  const ownPort = await network.expose("checker", () => serverOf(primary).port, clients);
  const { password, pathname } = new URL(first.url);
  const urlOf = (hosts: string) => `postgres://postgres:${password}@${hosts}${pathname}`;

  async function untilSynchronous(): Promise<void> {
    const select = "select from pg_stat_replication where sync_state = 'sync' and state = 'streaming'";
    await waitFor(async () => (await query(serverOf(primary).url, select)).rowCount === 1, {
      timeoutMs: settledTimeoutMs,
    });
  }

  async function promote({ random, last }: Chances): Promise<void> {
    const repairs = [network.cut({ from: primary, to: everybody }), network.cut({ from: everybody, to: primary })];
    const dead = serverOf(primary);
    const ended = dead.ended();
    dead.kill("SIGKILL");
    await ended;
    await sleep(random.between(decisionMs.least, decisionMs.most));
    await replica.promote();
    [primary, standby] = [standby, primary];
    await last();
    // What it has on disk may be more than the new primary has. So it starts from a copy.
    await rm(dead.home, { recursive: true, force: true });
    for (const repair of repairs) repair();
    replica = await addStandby();
  }

  const freeze = (which: () => Machine) => async (chances: Chances) => {
    const server = serverOf(which());
    server.kill("SIGSTOP");
    await chances.last();
    server.kill("SIGCONT");
    await untilSynchronous();
  };
  const cut = (directions: () => [from: string, to: string][]) => async (chances: Chances) => {
    const repairs = directions().map(([from, to]) => network.cut({ from, to }));
    await chances.last();
    for (const repair of repairs) repair();
    await untilSynchronous();
  };
  const faults: MachineFault[] = [
    { name: "PostgreSQL's machine dies, and its standby is promoted", strike: promote },
    { name: "PostgreSQL's primary freezes", strike: freeze(() => primary) },
    { name: "PostgreSQL's standby freezes", strike: freeze(() => standby) },
    {
      name: "PostgreSQL's standby is cut off from its primary",
      strike: cut(() => [
        [primary, standby],
        [standby, primary],
      ]),
    },
    { name: "what PostgreSQL's standby confirms does not arrive", strike: cut(() => [[standby, primary]]) },
  ];

  running = started.move();
  return {
    server: first,
    /** Names both servers. */
    environment: { DATABASE_URL: urlOf(ports.map((port) => `127.0.0.1:${port}`).join(",")) },
    /** Leads to the one that is the primary now, past the network. */
    url: urlOf(`127.0.0.1:${ownPort}`),
    faults,
    stop: () => running.disposeAsync(),
  };
}

async function query(url: string, sql: string): Promise<pg.QueryResult> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => {});
  await client.connect();
  try {
    return await client.query(sql);
  } finally {
    await client.end();
  }
}
