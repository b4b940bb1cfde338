import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A proxy in front of PostgreSQL. Once it is cut, whoever is behind it is as good as dead. */
export async function startCuttableProxy(url: string) {
  const { hostname, port } = new URL(url);
  const sockets = new Set<Socket>();
  let isCut = false;
  const server = createServer((socket) => {
    if (isCut) return void socket.destroy();
    const onward = connect(Number(port), hostname);
    for (const [from, to] of [
      [socket, onward],
      [onward, socket],
    ] as const) {
      sockets.add(from);
      from.on("error", () => {}).on("close", () => to.destroy());
      from.pipe(to);
    }
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const own = (server.address() as AddressInfo).port;
  return {
    port: own,
    url: Object.assign(new URL(url), { hostname: "127.0.0.1", port: String(own) }).href,
    cut() {
      isCut = true;
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}
