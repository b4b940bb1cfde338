import type { Server } from "node:http";
import { StartError } from "./start-error.ts";

/**
 * Resolves when the server accepts connections.
 *
 * @param address.variable the environment variable that sets the port, for the message
 * @throws StartError when the address can't be had
 */
export async function listen(server: Server, address: { host: string; port: number; variable: string }): Promise<void> {
  const { host, port, variable } = address;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", reject);
  server.listen(port, host, resolve);
  try {
    await promise;
  } catch (error) {
    throw new StartError(
      `${describe(error, host, port)} Set ${variable} to another port, or HOST to another address.`,
      {
        cause: error,
      },
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
