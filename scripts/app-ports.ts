import { choosePort } from "./ports.ts";
import { SetupProblem } from "./setup-problem.ts";

/** The ports that ingest and worker listen on. */
interface Ports {
  ingest: number;
  ingestAdmin: number;
  workerAdmin: number;
  /** Where clients on this machine find ingest. */
  url: string;
  /** Set when ingest could not have its usual port: a sentence that says so. */
  instead: string | undefined;
}

const DEFAULT_HOST = "127.0.0.1";
const DEFAULT_PORT = 8080;
const DEFAULT_ADMIN_PORT = 9101;

/**
 * From PORT, HOST and ADMIN_PORT, as far as they are set. Ingest and worker have an admin port each, so here ADMIN_PORT
 * is ingest's, and the worker's is the next one.
 *
 * @throws SetupProblem when a port that was asked for is in use
 */
export async function choosePorts(environment: NodeJS.ProcessEnv): Promise<Ports> {
  const host = hostOf(environment);
  const port = readPort(environment, "PORT");
  const adminPort = readPort(environment, "ADMIN_PORT");

  const ingest = await choosePort({
    variable: "PORT",
    port: port ?? DEFAULT_PORT,
    isDefault: port === undefined,
    host,
  });
  const ingestAdmin = await choosePort({
    variable: "ADMIN_PORT",
    port: adminPort ?? DEFAULT_ADMIN_PORT,
    isDefault: adminPort === undefined,
    avoid: [ingest],
  });
  const workerAdmin = await choosePort({
    variable: "ADMIN_PORT",
    port: adminPort === undefined ? DEFAULT_ADMIN_PORT + 1 : adminPort + 1,
    isDefault: adminPort === undefined,
    avoid: [ingest, ingestAdmin],
  });
  return {
    ingest,
    ingestAdmin,
    workerAdmin,
    url: `http://${hostForClients(host)}:${ingest}`,
    instead: port === undefined && ingest !== DEFAULT_PORT ? insteadOfDefault(ingest) : undefined,
  };
}

/** The apps' own default is all addresses, which is for containers; what runs here is for whoever sits here. */
export function hostOf(environment: NodeJS.ProcessEnv): string {
  return environment["HOST"] || DEFAULT_HOST;
}

function insteadOfDefault(port: number): string {
  return `Port ${DEFAULT_PORT} is in use by another program, so ingest takes ${port}. PORT=… chooses one.`;
}

function readPort(environment: NodeJS.ProcessEnv, variable: string): number | undefined {
  const text = environment[variable];
  if (!text) return undefined;
  const port = Number(text);
  if (Number.isInteger(port) && port >= 1 && port <= 65_534) return port;
  throw new SetupProblem(
    `${variable} is "${text}", which is no port.`,
    "Set it to a number from 1 to 65534, or leave it out.",
  );
}

function hostForClients(host: string): string {
  if (["0.0.0.0", "::", "127.0.0.1", "::1", "localhost"].includes(host)) return "localhost";
  return host.includes(":") ? `[${host}]` : host;
}
