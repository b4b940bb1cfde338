import { once } from "node:events";
import { connect as connectTcp, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { Gauge, type Registry } from "./metrics.ts";
import { keepDoing } from "./repeat.ts";
import { splitHosts } from "./split-hosts.ts";

const certificateIntervalMs = 10 * 60_000;
const connectTimeoutMs = 5_000;
const defaultPorts = { redis: 6_379, postgresql: 5_432 };
/** PostgreSQL's SSLRequest: the length of the message, and the code that stands in the place of a version. */
const sslRequest = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]);

type Server = keyof typeof defaultPorts;

/**
 * Exports until when the certificates of Redis and PostgreSQL are valid, if their URLs demand TLS. Of several URLs, the
 * certificate that expires first counts. The connections in use do not tell, because they outlive a certificate that
 * was replaced. So each look opens connections of its own.
 */
export function exportCertificates(
  metrics: Registry,
  urls: Partial<Record<Server, string | readonly string[]>>,
  signal: AbortSignal,
): void {
  const expires = new Gauge({
    name: "booking_events_certificate_expires_timestamp_seconds",
    help: "When the first certificate of a server's hosts expires, if this process uses TLS: redis or postgresql.",
    labelNames: ["server"],
    registers: [metrics],
  });

  async function look(): Promise<void> {
    for (const [server, given] of Object.entries(urls) as [Server, string | readonly string[]][]) {
      const secured = [given].flat().flatMap(splitHosts).filter(demandsTls);
      const reading = secured.map((url) => readCertificateEnd(server, new URL(url)).catch(() => undefined));
      const ends = (await Promise.all(reading)).flatMap((end) => end?.getTime() ?? []);
      // If no server answers, which is reported elsewhere, the last value stays.
      if (ends.length > 0) expires.set({ server }, Math.min(...ends) / 1_000);
    }
  }

  keepDoing(look, certificateIntervalMs, signal);
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
