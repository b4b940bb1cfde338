import type { Socket } from "node:net";
import { parseJson } from "@booking-events/schema";
import pg from "pg";
import { chooseServer, readServers } from "./choose-server.ts";

const defaultConnectTimeoutMs = 5_000;
/** Of the time for connecting. The rest is for the connection to the server that was chosen. */
const choiceShare = 0.5;

export type ServerConfig = pg.ClientConfig & { connectionString: string };

/**
 * A client whose URL may name several hosts. It finds the one that takes writes each time it connects, so a pool of such
 * clients follows a failover. The driver itself knows one host.
 */
export class ServerClient extends pg.Client {
  readonly #servers: string[];
  readonly #limitMs: number;

  constructor(config: ServerConfig) {
    const servers = readServers(config.connectionString);
    super({ ...config, connectionString: servers[0] });
    this.setTypeParser(pg.types.builtins.JSONB, parseJson);
    this.#servers = servers;
    this.#limitMs = choiceShare * (config.connectionTimeoutMillis || defaultConnectTimeoutMs);
  }

  override connect = ((callback?: (error: Error | null) => void) => {
    if (callback === undefined) {
      const { promise, resolve, reject } = Promise.withResolvers<this>();
      this.connect((error: Error | null) => (error ? reject(error) : resolve(this)));
      return promise;
    }
    if (this.#servers.length === 1) return super.connect(callback);
    chooseServer(this.#servers, this.#limitMs).then((url) => {
      Object.assign(this, hostAndPort(url));
      super.connect(callback);
    }, callback);
    return undefined;
  }) as pg.Client["connect"];
}

/** The address as the driver reads it. */
function hostAndPort(url: string): { host: string; port: number } {
  const { host, port } = new pg.Client({ connectionString: url });
  return { host, port };
}

/** A statement was under way on a primary that no longer answered, and another one has taken over. */
export class FormerPrimary extends Error {
  override name = "FormerPrimary";
  readonly code = "FORMER_PRIMARY";
}

/** After this time, a server that does not answer a statement may have been replaced. */
const suspiciousMs = 3_000;
const lookIntervalMs = 1_000;

/**
 * Ends the connections of a pool to a former primary that no longer answers, as soon as there is another one.
 * Otherwise their statements would wait for their time-outs.
 *
 * @param pool of {@link ServerClient}s
 * @returns what ends the watch
 */
export function leaveFormerPrimary(pool: pg.Pool, databaseUrl: string): () => void {
  const servers = readServers(databaseUrl);
  if (servers.length === 1) return () => {};
  const clients = new Set<pg.PoolClient>();
  const busySince = new Map<pg.PoolClient, number>();
  let isLooking = false;
  pool.on("connect", (client) => clients.add(client));
  pool.on("acquire", (client) => busySince.set(client, performance.now()));
  pool.on("release", (_, client) => busySince.delete(client));
  pool.on("remove", (client) => {
    clients.delete(client);
    busySince.delete(client);
  });

  async function look(): Promise<void> {
    const since = performance.now() - suspiciousMs;
    if (isLooking || ![...busySince.values()].some((time) => time < since)) return;
    isLooking = true;
    try {
      const { host, port } = hostAndPort(await chooseServer(servers, suspiciousMs));
      for (const client of clients) if (client.host !== host || client.port !== port) breakConnection(client);
    } catch {
      // There is no other primary yet.
    } finally {
      isLooking = false;
    }
  }

  const timer = setInterval(() => void look(), lookIntervalMs).unref();
  return () => clearInterval(timer);
}

/** Ending it in good order would wait for the server. */
function breakConnection(client: pg.PoolClient): void {
  const { connection } = client as unknown as { connection: { stream: Socket } };
  connection.stream.destroy(new FormerPrimary("PostgreSQL has another primary."));
}
