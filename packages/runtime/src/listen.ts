import type { Server } from "node:http";
import { StartError } from "./start-error.ts";

/**
 * Resolves when the server accepts connections.
 *
 * @param address.backlog the maximum number of connections that wait to be accepted; Node's default is 511
 * @param address.prefix of the environment variables for host and port, for the error message
 * @throws StartError if the server cannot listen on the address
 */
export async function listen(
  server: Server,
  address: { host: string; port: number; backlog?: number | undefined; prefix?: "ADMIN_" },
): Promise<void> {
  const { host, port, backlog, prefix = "" } = address;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", reject);
  server.listen({ port, host, backlog }, resolve);
  try {
    await promise;
  } catch (error) {
    throw new StartError(
      `${describe(error, host, port)} Set ${prefix}PORT to another port, or ${prefix}HOST to another address.`,
      { cause: error },
    );
  } finally {
    server.off("error", reject);
  }
}

function describe(error: unknown, host: string, port: number): string {
  switch ((error as NodeJS.ErrnoException).code) {
    case "EADDRINUSE":
      return `Port ${port} on ${host} is in use by another process.`;
    case "EACCES":
      return `Port ${port} needs privileges that this process doesn't have.`;
    default:
      return `Can't listen on ${host}, port ${port}.`;
  }
}
