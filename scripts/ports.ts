import { connect, createServer } from "node:net";
import { SetupProblem } from "./setup-problem.ts";

/**
 * Below the ports that operating systems give to outgoing connections (from 32768 on Linux, 49152 on macOS): until the
 * server listens, or while one that was killed is down, no client's connection may take its port.
 */
const FIRST_PORT = 15_000;
const PORT_COUNT = 17_000;
const handedOut = new Set<number>();

/** A TCP port of 127.0.0.1 that nothing listens on now, and that this process has not handed out before. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = FIRST_PORT + Math.floor(Math.random() * PORT_COUNT);
    if (handedOut.has(port) || !(await isPortFree(port))) continue;
    handedOut.add(port);
    return port;
  }
}

/**
 * Can a server listen on this port, and would a client on this machine reach it? Both are asked: macOS lets one
 * program listen on all addresses while another holds the same port of one address, and gets its clients.
 */
export async function isPortFree(port: number, host = "127.0.0.1"): Promise<boolean> {
  const answered = await Promise.all([isAnswered(port, "127.0.0.1"), isAnswered(port, "::1")]);
  return !answered.includes(true) && (await canListen(port, host));
}

/** How many ports after a default one are looked at before any free one will do. */
const NEIGHBOURS_MAX = 20;

/**
 * The port that a listener shall use: the wanted one, or a neighbour of it when that is taken and was only a default.
 * Asked for by the user and taken, it is the user's to decide.
 */
export async function choosePort(wanted: {
  variable: string;
  port: number;
  isDefault: boolean;
  host?: string | undefined;
  avoid?: readonly number[];
}): Promise<number> {
  const { variable, port, isDefault, host, avoid = [] } = wanted;
  if (!isDefault) {
    if (await isPortFree(port, host)) return port;
    throw portTaken(variable, port);
  }
  for (let candidate = port; candidate <= port + NEIGHBOURS_MAX; candidate += 1) {
    if (!avoid.includes(candidate) && (await isPortFree(candidate, host))) return candidate;
  }
  return freePort();
}

function portTaken(variable: string, port: number): SetupProblem {
  return new SetupProblem(
    `Port ${port}, asked for by ${variable}, is in use by another program.`,
    `See which one it is (lsof -nP -iTCP:${port} -sTCP:LISTEN) and stop it, ` +
      `or choose another port: ${variable}=${port + 10} npm start`,
  );
}

function canListen(port: number, host: string): Promise<boolean> {
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "EADDRINUSE") resolve(false);
      else if (error.code === "EACCES") reject(portNotAllowed(port, error));
      else if (error.code === "EADDRNOTAVAIL" || error.code === "ENOTFOUND") reject(noSuchAddress(host, error));
      else reject(error);
    });
    server.listen(port, host, () => server.close(() => resolve(true)));
  });
}

function isAnswered(port: number, host: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host, timeout: 500 });
    const settle = (answered: boolean) => {
      socket.destroy();
      resolve(answered);
    };
    socket.once("connect", () => settle(true));
    socket.once("timeout", () => settle(false));
    socket.once("error", () => settle(false));
  });
}

function portNotAllowed(port: number, cause: Error): SetupProblem {
  return new SetupProblem(
    `This user may not listen on port ${port}.`,
    "Choose a port above 1023, for example: PORT=8080 npm start",
    { cause },
  );
}

function noSuchAddress(host: string, cause: Error): SetupProblem {
  return new SetupProblem(
    `This machine has no address ${host} to listen on (asked for by HOST=${host}).`,
    "Leave HOST out, or set it to an address of this machine.",
    { cause },
  );
}
