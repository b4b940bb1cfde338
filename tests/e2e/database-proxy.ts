import { once } from "node:events";
import { createServer, connect as dial, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { createSecureContext, TLSSocket } from "node:tls";
import type { Certificate } from "@booking-events/scripts/certificates";

/** What the proxy does with each connection. */
export type ProxyMode =
  | "through"
  | "reset at once"
  | "reset in the handshake"
  | "expired certificate"
  | "no TLS"
  | "error at the start"
  | "invalid request for a password"
  | "error at the first statement"
  | "silent";

export interface DatabaseProxy {
  port: number;
  /** Ends all connections, and treats new ones as the mode says. */
  setMode(mode: ProxyMode): void;
  /** The number of connections since the mode was set. */
  countConnections(): number;
  close(): void;
}

const sslRequestBytes = 8;

/** Stands between clients and PostgreSQL, as a pooler does. It speaks TLS with clients, and can fail them. */
export async function startDatabaseProxy(options: {
  databaseUrl: string;
  certificate: Certificate;
  expired: Certificate;
}): Promise<DatabaseProxy> {
  const { hostname, port } = new URL(options.databaseUrl);
  const contextOf = ({ certificate, key }: Certificate) => createSecureContext({ cert: certificate, key });
  const contexts = { valid: contextOf(options.certificate), expired: contextOf(options.expired) };
  const sockets = new Set<Socket>();
  let mode: ProxyMode = "through";
  let connections = 0;

  const keep = (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => {}).on("close", () => sockets.delete(socket));
    return socket;
  };

  async function serve(socket: Socket): Promise<void> {
    connections += 1;
    if (mode === "reset at once") return void socket.resetAndDestroy();
    await readBytes(socket, sslRequestBytes);
    if (mode === "silent") return;
    if (mode === "reset in the handshake") return void socket.resetAndDestroy();
    if (mode === "no TLS") return void socket.write("N");
    socket.write("S");
    const secureContext = mode === "expired certificate" ? contexts.expired : contexts.valid;
    const secure = new TLSSocket(socket, { isServer: true, secureContext });
    secure.on("error", () => socket.destroy());
    const startup = await readStartup(secure);
    if (mode === "error at the start") return void secure.end(errorMessage("server login has been failing"));
    if (mode === "invalid request for a password") return void secure.end(message("R", [0, 0, 0, 10, 0]));
    if (mode === "error at the first statement") {
      const ready = message("Z", Buffer.from("I"));
      secure.write(Buffer.concat([message("R", [0, 0, 0, 0]), ready]));
      secure.on("data", () => secure.write(Buffer.concat([errorMessage("no server"), ready])));
      return;
    }
    const server = keep(dial(Number(port), hostname));
    server.write(startup);
    server.pipe(secure).pipe(server);
    socket.on("close", () => server.destroy());
    server.on("close", () => socket.destroy());
  }

  const server = createServer((socket) => void serve(keep(socket)).catch(() => socket.destroy()));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const endAll = () => sockets.forEach((socket) => void socket.destroy());
  return {
    port: (server.address() as { port: number }).port,
    setMode(next) {
      mode = next;
      connections = 0;
      endAll();
    },
    countConnections: () => connections,
    close() {
      server.close();
      endAll();
    },
  };
}

async function readBytes(stream: Duplex, count: number): Promise<Buffer> {
  for (;;) {
    const bytes: Buffer | null = stream.read(count);
    if (bytes !== null) return bytes;
    await once(stream, "readable");
  }
}

/** The first message of a connection. It has no type: it begins with its length. */
async function readStartup(stream: Duplex): Promise<Buffer> {
  const length = await readBytes(stream, 4);
  return Buffer.concat([length, await readBytes(stream, length.readInt32BE() - 4)]);
}

function message(type: string, content: Buffer | number[]): Buffer {
  const head = Buffer.from([type.charCodeAt(0), 0, 0, 0, 0]);
  head.writeInt32BE(content.length + 4, 1);
  return Buffer.concat([head, Buffer.from(content)]);
}

function errorMessage(text: string): Buffer {
  return message("E", Buffer.from(`SERROR\0VERROR\0CXX000\0M${text}\0\0`));
}
