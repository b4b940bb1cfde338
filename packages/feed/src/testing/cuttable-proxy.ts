import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/**
 * A proxy in front of PostgreSQL. While it is cut, whoever is behind it is as good as dead. It can also hold an answer
 * back, or all of them.
 */
export async function startCuttableProxy(url: string) {
  const { hostname, port } = new URL(url);
  const sockets = new Set<Socket>();
  let isCut = false;
  let isFrozen = false;
  let hold: { text: string; onHeld: (goOn: () => void) => void } | undefined;
  function forward(answer: Buffer, from: Socket, to: Socket): void {
    if (isFrozen) return;
    if (hold === undefined || !answer.includes(hold.text)) return void to.write(answer);
    const { onHeld } = hold;
    hold = undefined;
    from.pause();
    onHeld(() => {
      to.write(answer);
      from.resume();
    });
  }
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    if (isCut) return void socket.destroy();
    if (isFrozen) return void socket.on("error", () => {}).resume();
    const onward = connect(Number(port), hostname);
    socket.pipe(onward);
    onward.on("data", (answer) => forward(answer, onward, socket)).on("end", () => isFrozen || socket.end());
    for (const [from, to] of [
      [socket, onward],
      [onward, socket],
    ] as const) {
      sockets.add(from);
      from.on("error", () => {}).on("close", () => isFrozen || to.destroy());
    }
  });
  await once(server.listen(0, "127.0.0.1").unref(), "listening");
  const own = (server.address() as AddressInfo).port;
  return {
    port: own,
    url: Object.assign(new URL(url), { hostname: "127.0.0.1", port: String(own) }).href,
    /** Holds back the next answer that has this text. @returns how to let it go on, once it is held */
    holdAnswer(text: string): Promise<() => void> {
      return new Promise((resolve) => {
        hold = { text, onHeld: resolve };
      });
    },
    /** From now on, nothing is answered, as when the machine has died. */
    freeze() {
      isFrozen = true;
    },
    cut() {
      isCut = true;
      for (const socket of sockets) socket.destroy();
    },
    repair() {
      isCut = false;
    },
  };
}
