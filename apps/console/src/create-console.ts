import { openContext } from "@booking-events/operations";
import {
  adminPort,
  type Logger,
  parseEnvironment,
  redisVariables,
  servicePort,
  variables,
} from "@booking-events/runtime";
import { createLogins, loginVariables } from "./login/create-logins.ts";
import { createApp } from "./server/app.ts";
import { Tasks } from "./tasks/tasks.ts";

const entries = {
  PORT: servicePort(8082),
  HOST: variables.HOST,
  ADMIN_HOST: variables.ADMIN_HOST,
  ADMIN_PORT: adminPort(9105),
  ...redisVariables,
  REDIS_REPLICAS_TO_CONFIRM: variables.REDIS_REPLICAS_TO_CONFIRM,
  // A restore reads these two from the environment. A wrong one is told at the start, and not by the first restore.
  REDIS_MEMORY_HIGH_WATER: variables.REDIS_MEMORY_HIGH_WATER,
  MAX_BACKLOG: variables.MAX_BACKLOG,
  DATABASE_URL: variables.DATABASE_URL,
  DATABASE_SCHEMA: variables.DATABASE_SCHEMA,
  DIGEST_KEY: variables.DIGEST_KEY,
  QUEUE_PREFIX: variables.QUEUE_PREFIX,
  QUEUE_SHARDS: variables.QUEUE_SHARDS,
  PARTNERS_FILE: variables.PARTNERS_FILE,
  ...loginVariables,
  RUNBOOK_URL: variables.RUNBOOK_URL,
  LOG_LEVEL: variables.LOG_LEVEL,
  SHUTDOWN_DELAY_MS: variables.SHUTDOWN_DELAY_MS,
  SHUTDOWN_TIMEOUT_MS: variables.SHUTDOWN_TIMEOUT_MS,
};

export type Settings = ReturnType<typeof readSettings>;

/** @throws StartError */
export function readSettings(environment: NodeJS.ProcessEnv) {
  return parseEnvironment(entries, environment);
}

/** Operators are few, and what they ask must not take the database from the events. */
const maxDatabaseConnections = 4;

/**
 * Puts the console together. It connects to nothing before somebody asks.
 *
 * @throws StartError
 */
export function createConsole(
  settings: Settings,
  environment: NodeJS.ProcessEnv,
  { logger, stopping }: { logger: Logger; stopping: AbortSignal },
) {
  const now = () => new Date();
  const logins = createLogins(settings, now);
  const { close, ...operations } = openContext(
    { environment, now, notify: () => {} },
    { maxConnections: maxDatabaseConnections, applicationName: "booking-events-console" },
  );
  const tasks = new Tasks({ logger, stopping });
  const context = { operations, runbookUrl: settings.RUNBOOK_URL, stopping, tasks, logger };
  return {
    app: createApp({ context, logins, ownUrl: settings.CONSOLE_URL, logger }),
    async close() {
      await tasks.untilEnded();
      await close();
    },
  };
}
