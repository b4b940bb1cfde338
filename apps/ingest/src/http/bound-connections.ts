import { report } from "node:process";
import { type Logger, StartError } from "@booking-events/runtime";

/** For the connections to Redis, the admin port and its clients, files, and Node itself, which take about 30 together. */
const reservedDescriptors = 64;

/**
 * Each connection is a file descriptor, and a process that has none left can't even refuse one: whoever holds them all
 * keeps everybody out.
 *
 * @returns as many connections as are wanted, or as the process's limit of file descriptors allows
 * @throws StartError when it allows none
 */
export function boundConnections(wanted: number, logger: Logger, descriptorLimit = readDescriptorLimit()): number {
  const possible = descriptorLimit - reservedDescriptors;
  if (possible >= wanted) return wanted;
  if (possible < 1) {
    throw new StartError(
      `This process may open ${descriptorLimit} files, and needs ${reservedDescriptors} beside its connections. Raise the limit (ulimit -n).`,
    );
  }
  logger.warn({ connections: possible, wanted, descriptorLimit }, "fewer connections than MAX_CONNECTIONS: ulimit -n");
  return possible;
}

/** The soft limit, which Node raises to the hard one when it starts. */
function readDescriptorLimit(): number {
  // It would look up the name of each connection's other side. The types don't know this setting yet.
  Object.assign(report, { excludeNetwork: true });
  const { userLimits } = report.getReport() as unknown as { userLimits?: { open_files?: { soft?: unknown } } };
  const limit = userLimits?.open_files?.soft;
  // "unlimited", or a system that has no such limit.
  return typeof limit === "number" ? limit : Number.POSITIVE_INFINITY;
}
