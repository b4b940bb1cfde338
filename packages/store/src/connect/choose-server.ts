import pg from "pg";

/** Servers answer, but none takes writes: for example while no standby has been promoted yet. */
export class NoSuitableServer extends Error {
  override name = "NoSuitableServer";
  readonly code = "NO_SUITABLE_SERVER";
}

export interface Servers {
  /** One for each host. */
  urls: [string, ...string[]];
  /** Whether to ask the servers which of them takes writes. A single host may lead to a standby, too. */
  mustTakeWrites: boolean;
}

/**
 * Reads a URL that may name several hosts, such as `postgres://user@a:5432,b:5432/database`. libpq's parameter
 * `target_session_attrs` may only be `read-write`, which is the default for several hosts.
 *
 * @throws TypeError if the URL asks for another server than the one that takes writes
 */
export function readServers(databaseUrl: string): Servers {
  const [, before = "", hosts, after = ""] = /^(\w+:\/\/(?:[^/?#]*@)?)([^/?#]*)(.*)$/s.exec(databaseUrl) ?? [];
  const wanted = new URLSearchParams(after.split("?")[1]).get("target_session_attrs");
  if (wanted !== null && wanted !== "read-write") throw new TypeError("target_session_attrs must be read-write");
  if (hosts === undefined) return { urls: [databaseUrl], mustTakeWrites: false };
  const [first = "", ...others] = hosts.split(",").map((host) => before + host + after);
  return { urls: [first, ...others], mustTakeWrites: wanted !== null || others.length > 0 };
}

/** How the driver reads the host and the port of a URL. */
export interface Address {
  host: string;
  port: number;
}

/**
 * Asks all servers at the same time whether they take writes. So a server that is down or frozen does not delay the
 * choice of another one.
 *
 * @param limitMs for each server
 * @returns the address of the first server that answers that it does
 * @throws NoSuitableServer; why the first server can't be reached, if none can
 */
export async function chooseServer(urls: string[], limitMs: number): Promise<Address> {
  const answers = urls.map((url) => askServer(url, limitMs));
  try {
    return await Promise.any(answers);
  } catch (error) {
    const { errors } = error as AggregateError;
    throw errors.find((one) => one instanceof NoSuitableServer) ?? errors[0];
  }
}

/**
 * @param limitMs for each server
 * @returns the addresses of all servers that answer that they take writes. Several may lead to one server
 */
export async function findServers(urls: string[], limitMs: number): Promise<Address[]> {
  const answers = await Promise.allSettled(urls.map((url) => askServer(url, limitMs)));
  return answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []));
}

/** @throws NoSuitableServer; why the server can't be reached */
async function askServer(url: string, limitMs: number): Promise<Address> {
  const client = new pg.Client({
    connectionString: url,
    application_name: "booking-events-choose-server",
    connectionTimeoutMillis: limitMs,
    query_timeout: limitMs,
  });
  // The connection or the query fails with the same error.
  client.on("error", () => {});
  try {
    // The time of the query runs from now.
    const [, { rows }] = await Promise.all([
      client.connect(),
      client.query<{ takesWrites: boolean }>(
        `select not pg_is_in_recovery() and not current_setting('default_transaction_read_only')::boolean
           as "takesWrites"`,
      ),
    ]);
    if (rows[0]?.takesWrites !== true) throw new NoSuitableServer("None of the servers takes writes.");
    return { host: client.host, port: client.port };
  } finally {
    client.end().catch(() => {});
  }
}
