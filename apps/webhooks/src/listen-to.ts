import { once } from "node:events";
import { keepDoing, type Logger } from "@booking-events/runtime";
import { withOwnConnection } from "@booking-events/store";
import pg from "pg";

interface Listening {
  databaseUrl: string;
  channel: string;
  /** Called with what a notification says; and with null when listening begins, since something may have come before. */
  onNotification: (payload: string | null) => void;
  logger: Logger;
  signal: AbortSignal;
}

const reconnectPauseMs = 1_000;

/** Listens on a channel until the signal aborts, by a connection of its own. When that ends, another one is opened. */
export function listenTo(listening: Listening): void {
  keepDoing(() => listen(listening), reconnectPauseMs, listening.signal);
}

/** Resolves when the connection has ended. */
async function listen({ databaseUrl, channel, onNotification, logger, signal }: Listening): Promise<void> {
  try {
    await withOwnConnection(databaseUrl, "booking-events-webhooks (listening)", async (client) => {
      const ended = once(client, "end", { signal });
      // It may reject before it is awaited.
      ended.catch(() => {});
      client.on("notification", ({ payload }) => onNotification(payload ?? ""));
      await client.query(`listen ${pg.escapeIdentifier(channel)}`);
      onNotification(null);
      await ended;
    });
  } catch (error) {
    if (!signal.aborted) logger.debug({ err: error, channel }, "no notifications: polling");
  }
}
