import { report } from "node:process";
import { type Logger, StartError } from "@booking-events/runtime";

/**
 * Reserved for connections to Redis with one shard, the admin port and its clients, files, and Node itself. Together they use about
 * 30.
 */
const reservedDescriptors = 64;

/**
 * Limits the number of connections to what the process's limit on file descriptors allows. A process without free
 * descriptors cannot even refuse a connection, so a client that holds all of them would lock everybody out.
 *
 * @param options.shards of the queue, each of which has a connection to Redis
 * @returns the wanted number of connections, or fewer if the limit is lower
 * @throws StartError if the limit leaves no connections
 */
export function boundConnections(options: {
  wanted: number;
  shards: number;
  logger: Logger;
  descriptorLimit?: number | undefined;
}): number {
  const { wanted, shards, logger, descriptorLimit = readDescriptorLimit() } = options;
  const reserved = reservedDescriptors + shards - 1;
  const possible = descriptorLimit - reserved;
  if (possible >= wanted) return wanted;
  if (possible < 1) {
    throw new StartError(
      `The limit of ${descriptorLimit} open files is too low: ${reserved} are needed besides ` +
        "connections. Raise it (ulimit -n).",
    );
  }
  logger.warn(
    { connections: possible, wanted, descriptorLimit },
    "the limit on open files (ulimit -n) allows fewer connections than MAX_CONNECTIONS",
  );
  return possible;
}

/** Reads the soft limit, which Node raises to the hard limit when it starts. */
function readDescriptorLimit(): number {
  // Without this setting, the report resolves the host name of each connection's peer. Node's types do not have it yet.
  Object.assign(report, { excludeNetwork: true });
  const { userLimits } = report.getReport() as unknown as { userLimits?: { open_files?: { soft?: unknown } } };
  const limit = userLimits?.open_files?.soft;
  // The limit may be "unlimited", or unknown on this system.
  return typeof limit === "number" ? limit : Number.POSITIVE_INFINITY;
}
