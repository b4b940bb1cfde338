import { parseJson } from "@booking-events/schema";
import pg from "pg";
import { chooseServer, readServers } from "./choose-server.ts";

const defaultConnectTimeoutMs = 5_000;
/** Of the time for connecting. The rest is for the connection to the server that was chosen. */
const choiceShare = 0.5;

/**
 * A client whose URL may name several hosts. It finds the one that takes writes each time it connects, so a pool of such
 * clients follows a failover. The driver itself knows one host.
 */
export class ServerClient extends pg.Client {
  readonly #servers: string[];
  readonly #limitMs: number;

  constructor(config: pg.ClientConfig & { connectionString: string }) {
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
    chooseServer(this.#servers, this.#limitMs).then((address) => {
      Object.assign(this, address);
      super.connect(callback);
    }, callback);
    return undefined;
  }) as pg.Client["connect"];
}
