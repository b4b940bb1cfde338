import { createServer } from "node:net";
import { SetupProblem } from "./setup-problem.ts";

/**
 * Operating systems give higher ports to outgoing connections: from 32768 on Linux, 49152 on macOS. One of those could
 * be taken by a client's connection before the server listens, or while a server that was killed is down.
 */
const FREE_PORTS = { first: 15_000, count: 17_000 };
const handedOut = new Set<number>();
/**
 * Vitest numbers the processes that run tests at the same time, from 1 to at most 12. Each has a range of ports of its
 * own, since two could choose the same one before either server listens. Other programs have range 0.
 */
const RANGES = 13;
const rangeSize = Math.floor(FREE_PORTS.count / RANGES);
const range = Number(process.env["VITEST_POOL_ID"] ?? 0) % RANGES;

/**
 * A TCP port of 127.0.0.1 that nothing listens on, and that this process has not handed out before.
 *
 * @param following how many ports after it are handed out with it
 */
export async function freePort({ following = 0 }: { following?: number } = {}): Promise<number> {
  for (;;) {
    const offset = Math.floor(Math.random() * (rangeSize - following));
    const first = FREE_PORTS.first + range * rangeSize + offset;
    const ports = Array.from({ length: 1 + following }, (_, next) => first + next);
    if (ports.some((port) => handedOut.has(port))) continue;
    for (const port of ports) handedOut.add(port);
    const areFree = await Promise.all(ports.map((port) => isPortFree(port)));
    if (areFree.every(Boolean)) return first;
  }
}

/**
 * Can a server listen on this port, and would it get the clients of this machine? macOS lets one program listen on all
 * addresses while another holds the same port of one address, so each kind of address is tried.
 */
export async function isPortFree(port: number, host = "127.0.0.1"): Promise<boolean> {
  for (const address of new Set([host, "127.0.0.1", "0.0.0.0", "::"])) {
    const error = await tryToListen(port, address);
    if (error === undefined) continue;
    if (error.code === "EADDRINUSE") return false;
    if (address === host) throw cannotListen(port, host, error);
  }
  return true;
}

function tryToListen(port: number, host: string): Promise<NodeJS.ErrnoException | undefined> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once("error", resolve);
    server.listen(port, host, () => server.close(() => resolve(undefined)));
  });
}

function cannotListen(port: number, host: string, cause: NodeJS.ErrnoException): SetupProblem {
  const advice =
    cause.code === "EACCES"
      ? "Choose a port above 1023, for example: PORT=8080 npm start"
      : "Leave HOST out, or set it to an address of this machine.";
  return new SetupProblem(`Nothing can listen on port ${port} of ${host} (${cause.code}).`, advice, { cause });
}

/** The ports of the apps. */
export interface AppPorts {
  /** On which ingest, lookup and webhooks listen. The console listens on this machine only. */
  host: string;
  ingest: number;
  lookup: number;
  webhooks: number;
  console: number;
  ingestAdmin: number;
  workerAdmin: number;
  lookupAdmin: number;
  webhooksAdmin: number;
  consoleAdmin: number;
}

export const DEFAULT_PORT = 8080;
const DEFAULT_ADMIN_PORT = 9101;
/** How many ports after a default one are tried before any free one will do. */
const NEIGHBOURS_MAX = 20;

/**
 * From PORT, HOST and ADMIN_PORT, as far as they are set. PORT is ingest's, and lookup, the console and webhooks have free
 * ones near it. Each app has an admin port: ADMIN_PORT is ingest's, and those of worker, lookup, webhooks and console are
 * the next ones.
 *
 * @throws SetupProblem when a port that the user asked for is in use
 */
export async function chooseAppPorts(environment: NodeJS.ProcessEnv): Promise<AppPorts> {
  // The apps' own default is all addresses, which is for containers.
  const host = environment["HOST"] || "127.0.0.1";
  const adminPort = readPort(environment, "ADMIN_PORT");
  const port = readPort(environment, "PORT");
  const ingest = port ? await checkWanted("PORT", port, host) : await chooseNear(DEFAULT_PORT, { host });
  const wantedAdmins = adminPort ? [0, 1, 2, 3, 4].map((next) => adminPort + next) : [];
  const lookup = await chooseNear(ingest + 1, { host, avoid: wantedAdmins });
  const console = await chooseNear(ingest + 2, { avoid: [...wantedAdmins, lookup] });
  const webhooks = await chooseNear(ingest + 3, { host, avoid: [...wantedAdmins, lookup, console] });
  const admin = (wanted: number | undefined, usual: number) =>
    wanted ? checkWanted("ADMIN_PORT", wanted) : chooseNear(usual, { avoid: [ingest, lookup, webhooks, console] });
  const ingestAdmin = await admin(adminPort, DEFAULT_ADMIN_PORT);
  const workerAdmin = await admin(adminPort && adminPort + 1, ingestAdmin + 1);
  const lookupAdmin = await admin(adminPort && adminPort + 2, workerAdmin + 1);
  const webhooksAdmin = await admin(adminPort && adminPort + 3, lookupAdmin + 1);
  const consoleAdmin = await admin(adminPort && adminPort + 4, webhooksAdmin + 1);
  const admins = { ingestAdmin, workerAdmin, lookupAdmin, webhooksAdmin, consoleAdmin };
  return { host, ingest, lookup, webhooks, console, ...admins };
}

async function checkWanted(variable: string, port: number, host?: string): Promise<number> {
  if (await isPortFree(port, host)) return port;
  throw new SetupProblem(
    `Port ${port}, asked for by ${variable}, is in use by another program.`,
    `See which one it is (lsof -nP -iTCP:${port} -sTCP:LISTEN) and stop it, ` +
      `or choose another port: ${variable}=${port + 10} npm start`,
  );
}

/** A default port; or, if that is taken, one near it. */
async function chooseNear(port: number, { host, avoid = [] }: { host?: string; avoid?: number[] }): Promise<number> {
  for (let candidate = port; candidate <= port + NEIGHBOURS_MAX; candidate += 1) {
    if (!avoid.includes(candidate) && (await isPortFree(candidate, host))) return candidate;
  }
  return freePort();
}

function readPort(environment: NodeJS.ProcessEnv, variable: string): number | undefined {
  const text = environment[variable];
  if (!text) return undefined;
  const port = Number(text);
  if (Number.isInteger(port) && port >= 1 && port <= 65_531) return port;
  throw new SetupProblem(
    `${variable} is "${text}", which is not a port.`,
    "Set it to a number from 1 to 65531, or leave it out.",
  );
}
