import pg from "pg";

/** What a session of the server must be like. The names and their meaning are those of libpq. */
const sessionKinds = {
  any: () => true,
  "read-write": ({ isReadOnly }: Session) => !isReadOnly,
  "read-only": ({ isReadOnly }: Session) => isReadOnly,
  primary: ({ isStandby }: Session) => !isStandby,
  standby: ({ isStandby }: Session) => isStandby,
  "prefer-standby": ({ isStandby }: Session) => isStandby,
};

type SessionKind = keyof typeof sessionKinds;

interface Session {
  isStandby: boolean;
  isReadOnly: boolean;
}

/** Which servers there are, and which one to connect to. */
export interface Servers {
  /** One URL for each host. */
  urls: [string, ...string[]];
  /** Undefined: there is one host, and any session will do. */
  wanted: SessionKind | undefined;
}

/**
 * Servers answer, but none is what the URL asks for: for example while no standby has been promoted yet.
 */
export class NoSuitableServer extends Error {
  override name = "NoSuitableServer";
  readonly code = "NO_SUITABLE_SERVER";
}

/**
 * Reads a URL that may name several hosts, such as `postgres://user@a:5432,b:5432/database`. The parameter
 * `target_session_attrs` says which of them to connect to. Default: `read-write` if there are several.
 */
export function readServers(databaseUrl: string): Servers {
  const [, before = "", hosts, after = ""] = /^(\w+:\/\/(?:[^/?#]*@)?)([^/?#]*)(.*)$/s.exec(databaseUrl) ?? [];
  const [first = "", ...others] = hosts?.split(",") ?? [];
  const toUrl = (host: string) => (hosts === undefined ? databaseUrl : before + host + after);
  const attributes = new URLSearchParams(after.split("?")[1]).get("target_session_attrs");
  const wanted = attributes ?? (others.length > 0 ? "read-write" : undefined);
  if (wanted !== undefined && !isSessionKind(wanted))
    throw new TypeError(`target_session_attrs must be one of ${Object.keys(sessionKinds).join(", ")}`);
  return { urls: [toUrl(first), ...others.map(toUrl)], wanted };
}

function isSessionKind(text: string): text is SessionKind {
  return Object.hasOwn(sessionKinds, text);
}

/**
 * Asks all servers at the same time what they are. So a server that is down or frozen does not delay the choice if
 * another one is suitable.
 *
 * @param limitMs for each server
 * @returns the URL of the first suitable server that answers
 * @throws NoSuitableServer; why the first server can't be reached, if none can
 */
export async function chooseServer({ urls, wanted = "any" }: Servers, limitMs: number): Promise<string> {
  const sessions = urls.map((url) => readSession(url, limitMs));
  const isSuitable = sessionKinds[wanted];
  const answers = sessions.map(async (session, index) => {
    if (!isSuitable(await session)) throw new NoSuitableServer(`None of the servers is ${wanted}.`);
    return urls[index] as string;
  });
  try {
    return await Promise.any(answers);
  } catch (error) {
    const { errors } = error as AggregateError;
    const notSuitable = errors.find((one) => one instanceof NoSuitableServer);
    if (notSuitable === undefined) throw errors[0];
    if (wanted !== "prefer-standby") throw notSuitable;
    return await Promise.any(sessions.map(async (session, index) => session.then(() => urls[index] as string)));
  }
}

async function readSession(url: string, limitMs: number): Promise<Session> {
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
      client.query<Session>(
        `select pg_is_in_recovery() as "isStandby",
           pg_is_in_recovery() or current_setting('default_transaction_read_only')::boolean as "isReadOnly"`,
      ),
    ]);
    return rows[0] as Session;
  } finally {
    client.end().catch(() => {});
  }
}
