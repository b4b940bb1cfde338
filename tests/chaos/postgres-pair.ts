import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { execute } from "@booking-events/harness/execute";
import { clients, everybody, type Network } from "@booking-events/harness/network";
import { type PostgresStandby, startPostgresStandby } from "@booking-events/harness/postgres-standby";
import { waitFor } from "@booking-events/harness/wait-for";
import { type PostgresServer, startPostgres } from "@booking-events/scripts/services";
import type { Chances, MachineFault } from "./machine-faults.ts";

const machines = ["postgres-1", "postgres-2"] as const;
type Machine = (typeof machines)[number];
type Direction = [from: Machine, to: Machine];

/** Until somebody, or something, has noticed that the primary is gone. */
const decisionMs = { least: 500, most: 1_500 };
const synchronousTimeoutMs = 60_000;

/** A primary, and a standby that each commit waits for. The apps reach both through the network. */
export async function startPostgresPair({ dir, network }: { dir: string; network: Network }) {
  await using started = new AsyncDisposableStack();
  const server = await startPostgres({ dir: join(dir, "postgres-0") });
  started.defer(server.stop);
  const pair = new PostgresPair(server, dir, network);
  started.defer(() => pair.stop());
  await pair.addStandby();
  const ports = [];
  for (const machine of machines) ports.push(await network.expose(machine, () => pair.serverOf(machine).port));
  // Who checks the service looks past the network, into the one that is the primary now.
  const ownPort = await network.expose("checker", () => pair.primary.port, clients);
  const { password, pathname } = new URL(server.url);
  const urlOf = (hosts: string) => `postgres://postgres:${password}@${hosts}${pathname}`;
  const running = started.move();
  return {
    server,
    /** Names both servers. */
    environment: { DATABASE_URL: urlOf(ports.map((port) => `127.0.0.1:${port}`).join(",")) },
    /** Leads to the one that is the primary now, past the network. */
    url: urlOf(`127.0.0.1:${ownPort}`),
    faults: pair.faults(),
    stop: () => running.disposeAsync(),
  };
}

class PostgresPair {
  readonly #dir: string;
  readonly #network: Network;
  readonly #servers: Map<Machine, PostgresServer>;
  readonly #standbys = new AsyncDisposableStack();
  #primary: Machine = "postgres-1";
  #standby: Machine = "postgres-2";
  #replica: PostgresStandby | undefined;
  #copies = 0;

  constructor(first: PostgresServer, dir: string, network: Network) {
    this.#dir = dir;
    this.#network = network;
    this.#servers = new Map([[this.#primary, first]]);
  }

  get primary(): PostgresServer {
    return this.serverOf(this.#primary);
  }

  serverOf(machine: Machine): PostgresServer {
    return this.#servers.get(machine) as PostgresServer;
  }

  async addStandby(): Promise<void> {
    this.#copies += 1;
    const from = this.primary;
    const added = await startPostgresStandby({
      primary: from,
      dir: join(this.#dir, `postgres-${this.#copies}`),
      name: `copy_${this.#copies}`,
      replicationPort: await this.#network.expose(this.#primary, from.port, this.#standby),
    });
    this.#standbys.defer(added.stop);
    this.#servers.set(this.#standby, added);
    this.#replica = added;
  }

  faults(): MachineFault[] {
    const toStandby = (): Direction => [this.#primary, this.#standby];
    const toPrimary = (): Direction => [this.#standby, this.#primary];
    return [
      {
        name: "PostgreSQL's machine dies, and its standby is promoted",
        strike: (chances) => this.#promote(chances),
      },
      { name: "PostgreSQL's primary freezes", strike: (chances) => this.#freeze(this.#primary, chances) },
      { name: "PostgreSQL's standby freezes", strike: (chances) => this.#freeze(this.#standby, chances) },
      {
        name: "PostgreSQL's standby is cut off from its primary",
        strike: (chances) => this.#cut([toStandby(), toPrimary()], chances),
      },
      {
        name: "what PostgreSQL's standby confirms does not arrive",
        strike: (chances) => this.#cut([toPrimary()], chances),
      },
    ];
  }

  async stop(): Promise<void> {
    await this.#standbys.disposeAsync();
  }

  async #promote({ random, last }: Chances): Promise<void> {
    const repairs = [
      this.#network.cut({ from: this.#primary, to: everybody }),
      this.#network.cut({ from: everybody, to: this.#primary }),
    ];
    const dead = this.primary;
    const ended = dead.ended();
    dead.kill("SIGKILL");
    await ended;
    await sleep(random.between(decisionMs.least, decisionMs.most));
    await this.#replica?.promote();
    [this.#primary, this.#standby] = [this.#standby, this.#primary];
    await last();
    // What it has on disk may be more than the new primary has. So it starts from a copy.
    await rm(dead.home, { recursive: true, force: true });
    for (const repair of repairs) repair();
    await this.addStandby();
  }

  async #freeze(machine: Machine, { last }: Chances): Promise<void> {
    const server = this.serverOf(machine);
    server.kill("SIGSTOP");
    await last();
    server.kill("SIGCONT");
    await this.#untilSynchronous();
  }

  async #cut(directions: Direction[], { last }: Chances): Promise<void> {
    const repairs = directions.map(([from, to]) => this.#network.cut({ from, to }));
    await last();
    for (const repair of repairs) repair();
    await this.#untilSynchronous();
  }

  async #untilSynchronous(): Promise<void> {
    const select = "select from pg_stat_replication where sync_state = 'sync' and state = 'streaming'";
    await waitFor(async () => (await execute(this.primary.url, select)).rowCount === 1, {
      timeoutMs: synchronousTimeoutMs,
    });
  }
}
