import { connect, type Socket } from "node:net";
import { connect as connectTls, TLSSocket } from "node:tls";
import { type Caddy, startCaddy } from "@booking-events/harness/start-caddy";
import type { SupervisedApp } from "./supervise.ts";

/** Opens a connection, to one of several processes in turn. What is written to it before it stands is sent then. */
export type Dial = () => Socket;

/** How partners and strangers reach the service. */
export interface Entrance {
  ingestUrls: readonly string[];
  /** Of `https:` URLs, the certificate of the authority to trust. */
  authority?: string;
  dialIngest: Dial;
  dialLookup: Dial;
  /** Before the processes, if it is. */
  proxy?: Caddy;
}

export function enterDirectly(apps: readonly SupervisedApp[]): Entrance {
  const ingests = named(apps, "ingest");
  return {
    ingestUrls: ingests.map(({ host, port }) => `http://${host}:${port}`),
    dialIngest: dialInTurn(ingests),
    dialLookup: dialInTurn(named(apps, "lookup")),
  };
}

/** @param program where Caddy is */
export async function enterByProxy(
  program: string,
  apps: readonly SupervisedApp[],
): Promise<Entrance & AsyncDisposable> {
  const ingests = named(apps, "ingest");
  const lookups = named(apps, "lookup");
  const addressOf = ({ host, port }: SupervisedApp) => `${host}:${port}`;
  const proxy = await startCaddy(program, {
    upstreams: ingests.map(addressOf),
    adminPort: ingests[0]?.adminPort ?? 0,
    lookup: { upstream: lookups.map(addressOf).join(" "), adminPort: lookups[0]?.adminPort ?? 0 },
  });
  const { httpsPort: port, authority } = proxy;
  const dial = () => connectTls({ host: "127.0.0.1", port, servername: "localhost", ca: authority });
  return {
    ingestUrls: [`https://localhost:${port}`],
    authority,
    dialIngest: dial,
    dialLookup: dial,
    proxy,
    [Symbol.asyncDispose]: proxy.stop,
  };
}

/** Closes it without the wait in which a connection keeps its port: soon there would be none left. */
export function cutOff(socket: Socket): void {
  if (socket instanceof TLSSocket) socket.destroy();
  else socket.resetAndDestroy();
}

function named(apps: readonly SupervisedApp[], kind: "ingest" | "lookup"): SupervisedApp[] {
  return apps.filter(({ name }) => name.startsWith(kind));
}

function dialInTurn(apps: readonly SupervisedApp[]): Dial {
  let dialled = 0;
  return () => {
    const { host, port } = apps[dialled % apps.length] ?? { host: "", port: 0 };
    dialled += 1;
    return connect(port, host);
  };
}
