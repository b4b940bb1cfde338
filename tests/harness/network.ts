import { once } from "node:events";
import { createServer, connect as dial, type Server, type Socket } from "node:net";

/** Whoever connects from an address that is no machine's. */
export const clients = "clients";
/** All machines, without clients. */
export const servers = "servers";
/** All machines, and clients. */
export const everybody = "everybody";

/** Data from one to the other: names of machines, or one of the words above. */
export interface Direction {
  from: string;
  to: string;
}

interface Connection {
  from: string;
  to: string;
  /** Data was discarded, so the rest must not arrive either. */
  isBroken: boolean;
  sockets: Socket[];
}

interface Delay {
  least: number;
  most: number;
}

export const noDelay: Delay = { least: 0, most: 0 };

/** Of this process. */
let addressesGiven = 0;

/**
 * Links between servers of this machine that act as if each server had a machine of its own. A link delays data, and
 * can be cut in either direction. Data in flight is then lost, as it is when a machine dies. A signal alone cannot do
 * this: the kernel delivers what a killed process has written.
 *
 * It needs all of 127.0.0.0/8 as loopback addresses, which Linux has. Servers connect from the address that
 * {@link Network.addMachine} gives them, and reach each other by the ports that {@link Network.expose} returns.
 */
export class Network {
  /** Of each piece of data between machines. Data from and to clients has no delay. */
  readonly #delayMs: Delay;
  /** The address of each tells where a connection comes from. */
  readonly #machines = new Map<string, string>();
  readonly #cuts = new Set<Direction>();
  readonly #connections = new Set<Connection>();
  readonly #listeners: Server[] = [];

  constructor({ delayMs }: { delayMs: Delay }) {
    this.#delayMs = delayMs;
  }

  /** @returns the address that the machine's servers must listen on and connect from */
  addMachine(name: string): string {
    addressesGiven += 1;
    // Any address of 127.0.0.0/8 will do: ports tell the servers of different processes apart.
    const address = `127.1.${Math.floor(addressesGiven / 250)}.${1 + (addressesGiven % 250)}`;
    this.#machines.set(name, address);
    return address;
  }

  /**
   * @param port a function is asked for each connection
   * @param from whose connections these are; default: told by their address
   * @returns a port of 127.0.0.1 by which others reach this port of the machine
   */
  async expose(to: string, port: number | (() => number), from?: string): Promise<number> {
    const accept = (socket: Socket) => {
      this.#carry(socket, from ?? this.#nameOf(socket.remoteAddress), to, typeof port === "number" ? port : port());
    };
    const server = createServer({ allowHalfOpen: true }, accept);
    this.#listeners.push(server);
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return (server.address() as { port: number }).port;
  }

  /**
   * Loses all data in this direction, also what is in flight, until the returned function repairs the link. That resets
   * the connections which have lost data. Others, on which nothing was sent, go on.
   */
  cut(direction: Direction): () => void {
    const cut = { ...direction };
    this.#cuts.add(cut);
    return () => {
      this.#cuts.delete(cut);
      for (const connection of this.#connections) {
        const { from, to, isBroken, sockets } = connection;
        if (!isBroken || this.#isCut(from, to) || this.#isCut(to, from)) continue;
        this.#connections.delete(connection);
        for (const socket of sockets) socket.resetAndDestroy();
      }
    };
  }

  close(): void {
    for (const listener of this.#listeners) listener.close();
    for (const { sockets } of this.#connections) for (const socket of sockets) socket.destroy();
  }

  #carry(incoming: Socket, from: string, to: string, port: number): void {
    const host = this.#machines.get(to) ?? "127.0.0.1";
    const outgoing = dial({ host, port, allowHalfOpen: true, noDelay: true });
    const isBroken = this.#isCut(from, to) || this.#isCut(to, from);
    const connection = { from, to, isBroken, sockets: [incoming, outgoing] };
    this.#connections.add(connection);
    const end = () => {
      if (connection.isBroken) return;
      this.#connections.delete(connection);
      incoming.destroy();
      outgoing.destroy();
    };
    this.#pass(connection, incoming, outgoing, from, to, end);
    this.#pass(connection, outgoing, incoming, to, from, end);
  }

  /** Passes on what comes from the source, and its end, in order. */
  #pass(connection: Connection, source: Socket, sink: Socket, from: string, to: string, end: () => void): void {
    const delay = from === clients || to === clients ? noDelay : this.#delayMs;
    const later = createDelayLine(delay, (deliver) => {
      if (this.#isCut(from, to)) connection.isBroken = true;
      if (!connection.isBroken) deliver();
    });
    source.setNoDelay(true);
    source.on("data", (chunk: Buffer) => later(() => void sink.write(chunk)));
    source.on("end", () => later(() => void sink.end()));
    source.on("close", () => later(end));
    source.on("error", () => later(end));
  }

  #isCut(from: string, to: string): boolean {
    return [...this.#cuts].some((cut) => includes(cut.from, from) && includes(cut.to, to));
  }

  #nameOf(address: string | undefined): string {
    return [...this.#machines].find(([, its]) => its === address)?.[0] ?? clients;
  }
}

/**
 * Delays actions, each by its own time, and keeps their order. One timer for each action would not keep it: Node rounds
 * times, and may then run the later of two timers first.
 */
function createDelayLine(delayMs: Delay, run: (action: () => void) => void) {
  const waiting: { dueAtMs: number; action: () => void }[] = [];
  let lastDueMs = 0;

  function runDue(): void {
    for (let next = waiting[0]; next !== undefined; next = waiting[0]) {
      const waitMs = next.dueAtMs - performance.now();
      if (waitMs > 0) return void setTimeout(runDue, waitMs);
      waiting.shift();
      run(next.action);
    }
  }

  return (action: () => void): void => {
    if (delayMs.most === 0) {
      run(action);
      return;
    }
    lastDueMs = Math.max(lastDueMs, performance.now() + between(delayMs));
    waiting.push({ dueAtMs: lastDueMs, action });
    if (waiting.length === 1) setTimeout(runDue, Math.max(0, lastDueMs - performance.now()));
  };
}

function includes(group: string, name: string): boolean {
  return group === name || group === everybody || (group === servers && name !== clients);
}

function between({ least, most }: { least: number; most: number }): number {
  return least + Math.random() * (most - least);
}
