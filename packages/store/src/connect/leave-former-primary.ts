import type { Socket } from "node:net";
import type pg from "pg";
import { findServers, readServers } from "./choose-server.ts";

/** After this time, a server that does not answer a statement may have been replaced. */
const suspiciousMs = 3_000;
const lookIntervalMs = 1_000;

/** A statement was under way on a primary that no longer answered, and another one has taken over. */
export class FormerPrimary extends Error {
  override name = "FormerPrimary";
  readonly code = "FORMER_PRIMARY";
}

/**
 * Ends the connections of a pool to a former primary that no longer answers, as soon as there is another one.
 * Otherwise their statements would wait for their time-outs.
 *
 * @param pool of {@link ServerClient}s
 * @returns what ends the watch
 */
export function leaveFormerPrimary(pool: pg.Pool, databaseUrl: string): () => void {
  const { urls } = readServers(databaseUrl);
  if (urls.length === 1) return () => {};
  const watch = new PrimaryWatch(pool, urls);
  const timer = setInterval(() => void watch.look(), lookIntervalMs).unref();
  return () => clearInterval(timer);
}

class PrimaryWatch {
  readonly #servers: string[];
  readonly #clients = new Set<pg.PoolClient>();
  readonly #busySince = new Map<pg.PoolClient, number>();
  #isLooking = false;

  constructor(pool: pg.Pool, servers: string[]) {
    this.#servers = servers;
    pool.on("connect", (client) => this.#clients.add(client));
    pool.on("acquire", (client) => this.#busySince.set(client, performance.now()));
    pool.on("release", (_, client) => this.#busySince.delete(client));
    pool.on("remove", (client) => {
      this.#clients.delete(client);
      this.#busySince.delete(client);
    });
  }

  async look(): Promise<void> {
    if (this.#isLooking || !this.#isSuspicious()) return;
    this.#isLooking = true;
    const primaries = await findServers(this.#servers, suspiciousMs);
    this.#isLooking = false;
    // There is no other primary yet.
    if (primaries.length === 0) return;
    for (const client of this.#clients) {
      const isToPrimary = primaries.some(({ host, port }) => client.host === host && client.port === port);
      if (!isToPrimary) breakConnection(client);
    }
  }

  #isSuspicious(): boolean {
    const since = performance.now() - suspiciousMs;
    return [...this.#busySince.values()].some((time) => time < since);
  }
}

/** Ending it in good order would wait for the server. */
function breakConnection(client: pg.PoolClient): void {
  const { connection } = client as unknown as { connection: { stream: Socket } };
  connection.stream.destroy(new FormerPrimary("PostgreSQL has another primary."));
}
