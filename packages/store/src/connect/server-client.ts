import { parseJson } from "@booking-events/schema";
import pg from "pg";
import { chooseServer, readServers, type Servers } from "./choose-server.ts";

const defaultConnectTimeoutMs = 5_000;
/** Of the time for connecting. The rest is for the connection to the server that was chosen. */
const choiceShare = 0.5;

export interface Breakable {
  /** Breaks the connection when it aborts, whatever is under way. Ending it in good order would wait for the server. */
  signal?: AbortSignal;
}

/**
 * A client whose URL may name several hosts. It finds the one that takes writes each time it connects, so a pool of such
 * clients follows a failover. The driver itself knows one host. With one host and no `target_session_attrs`, nothing is
 * asked.
 */
export class ServerClient extends pg.Client {
  readonly #servers: Servers;
  readonly #limitMs: number;
  readonly #signal: AbortSignal | undefined;

  constructor(config: pg.ClientConfig & { connectionString: string } & Breakable) {
    const servers = readServers(config.connectionString);
    super({ ...config, connectionString: servers.urls[0] });
    this.setTypeParser(pg.types.builtins.JSONB, parseJson);
    this.#servers = servers;
    this.#signal = config.signal;
    this.#limitMs = choiceShare * (config.connectionTimeoutMillis || defaultConnectTimeoutMs);
  }

  override connect = ((callback?: (error: Error | null) => void) => {
    if (callback === undefined)
      return new Promise<this>((resolve, reject) => {
        this.connect((error: Error | null) => (error ? reject(error) : resolve(this)));
      });
    if (!this.#servers.mustTakeWrites) return this.#open(callback);
    chooseServer(this.#servers.urls, this.#limitMs).then((address) => {
      Object.assign(this, address);
      this.#open(callback);
    }, callback);
    return undefined;
  }) as pg.Client["connect"];

  #open(callback: (error: Error | null) => void): void {
    const signal = this.#signal;
    if (signal?.aborted) {
      callback(signal.reason);
      return;
    }
    super.connect(callback);
    const breakOff = () => this.connection.stream.destroy();
    signal?.addEventListener("abort", breakOff);
    this.once("end", () => signal?.removeEventListener("abort", breakOff));
  }
}
