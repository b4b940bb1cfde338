import { once } from "node:events";
import { connect as connectTcp, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { Gauge, type Registry } from "./metrics.ts";
import { repeat } from "./repeat.ts";
import { splitHosts } from "./split-hosts.ts";

const lookIntervalMs = 10 * 60_000;
const connectTimeoutMs = 5_000;
const defaultPorts = { redis: 6_379, postgresql: 5_432 };
/** PostgreSQL's SSLRequest: the length of the message, and the code that stands in the place of a version. */
const sslRequest = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]);

type Server = keyof typeof defaultPorts;

/**
 * Exports until when the certificates of Redis and PostgreSQL are valid, if their URLs demand TLS. The connections in
 * use would not tell: they outlive a certificate that has been replaced since. So this opens one of its own each time.
 */
export function exportCertificates(
  metrics: Registry,
  urls: Partial<Record<Server, string>>,
  signal: AbortSignal,
): void {
  const expires = new Gauge({
    name: "booking_events_certificate_expires_timestamp_seconds",
    help: "When the first certificate of a server's hosts expires, if this process uses TLS: redis or postgresql.",
    labelNames: ["server"],
    registers: [metrics],
  });

  async function look(): Promise<void> {
    for (const [server, url] of Object.entries(urls) as [Server, string][]) {
      const hosts = splitHosts(url);
      if (!hosts.every(demandsTls)) continue;
      // If no host answers, which is reported elsewhere, the last value stays.
      const ends = await Promise.all(
        hosts.map((host) => readCertificateEnd(server, new URL(host)).catch(() => undefined)),
      );
      const [first] = ends.flatMap((end) => end?.getTime() ?? []).toSorted((one, other) => one - other);
      if (first !== undefined) expires.set({ server }, first / 1_000);
    }
  }

  void look().then(() => repeat(look, lookIntervalMs, signal));
}

function demandsTls(url: string): boolean {
  const { protocol, searchParams } = new URL(url);
  const sslMode = searchParams.get("sslmode");
  return (
    protocol === "rediss:" ||
    (sslMode !== null && sslMode !== "disable") ||
    ["true", "1"].includes(searchParams.get("ssl") ?? "")
  );
}

/** @throws if the server does not present a certificate in time */
async function readCertificateEnd(server: Server, { hostname, port }: URL): Promise<Date | undefined> {
  const host = hostname.replace(/^\[|\]$/g, "");
  const inTime = { signal: AbortSignal.timeout(connectTimeoutMs) };
  const socket = ignoreErrors(connectTcp({ host, port: Number(port) || defaultPorts[server] }));
  try {
    await once(socket, "connect", inTime);
    if (server === "postgresql") await requestTls(socket, inTime);
    const name = isIP(host) === 0 ? { servername: host } : {};
    // Nothing is sent over it, and the end of a certificate that has expired must be readable too.
    const secured = ignoreErrors(connectTls({ socket, rejectUnauthorized: false, ...name }));
    await once(secured, "secureConnect", inTime);
    return secured.getPeerX509Certificate()?.validToDate;
  } finally {
    socket.destroy();
  }
}

/** Whoever waits for a socket gets its error. One that comes later must not end the process. */
function ignoreErrors<Connection extends Socket>(socket: Connection): Connection {
  return socket.on("error", () => {});
}

async function requestTls(socket: Socket, inTime: { signal: AbortSignal }): Promise<void> {
  socket.write(sslRequest);
  const [answer] = (await once(socket, "data", inTime)) as [Buffer];
  if (answer.toString() !== "S") throw new Error("The server has no TLS.");
}
