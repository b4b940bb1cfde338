import { once } from "node:events";
import { createServer, connect as dial, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { createSecureContext, TLSSocket } from "node:tls";
import type { Certificate } from "@booking-events/scripts/certificates";

/** What stands between a client and PostgreSQL does with each connection. */
export type FrontMode =
  | "through"
  | "reset at once"
  | "reset in the handshake"
  | "expired certificate"
  | "no TLS"
  | "error at the start"
  | "nonsense for a password"
  | "error at the first statement"
  | "silent";

export interface DatabaseFront {
  port: number;
  /** Ends the connections that there are, and deals with those to come as said. */
  setMode(mode: FrontMode): void;
  /** How many connections came since the mode was set. */
  countConnections(): number;
  close(): void;
}

const sslRequestBytes = 8;

/** A pooler, or whatever is on the way to PostgreSQL: it speaks TLS with clients, and fails them as it is told. */
export async function startDatabaseFront(options: {
  databaseUrl: string;
  certificate: Certificate;
  expired: Certificate;
}): Promise<DatabaseFront> {
  const { hostname, port } = new URL(options.databaseUrl);
  const contextOf = ({ certificate, key }: Certificate) => createSecureContext({ cert: certificate, key });
  const contexts = { valid: contextOf(options.certificate), expired: contextOf(options.expired) };
  const sockets = new Set<Socket>();
  let mode: FrontMode = "through";
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
    const startup = await readMessage(secure);
    if (mode === "error at the start") return void secure.end(error("XX000", "server login has been failing"));
    if (mode === "nonsense for a password") return void secure.end(message("R", Buffer.from([0, 0, 0, 10, 0])));
    if (mode === "error at the first statement") {
      const ready = message("Z", Buffer.from("I"));
      secure.write(Buffer.concat([message("R", Buffer.from([0, 0, 0, 0])), ready]));
      secure.on("data", () => secure.write(Buffer.concat([error("XX000", "no server"), ready])));
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
  const endAll = () => {
    for (const socket of sockets) socket.destroy();
  };
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

/** The first message of a connection: its length, with which it begins, and the rest. */
async function readMessage(stream: Duplex): Promise<Buffer> {
  const length = await readBytes(stream, 4);
  return Buffer.concat([length, await readBytes(stream, length.readInt32BE() - 4)]);
}

function message(type: string, content: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.write(type);
  head.writeInt32BE(content.length + 4, 1);
  return Buffer.concat([head, content]);
}

function error(code: string, text: string): Buffer {
  return message("E", Buffer.from(`SERROR\0VERROR\0C${code}\0M${text}\0\0`));
}
