/** Redis and PostgreSQL as real servers on this machine, for `npm start`, the tests and the load tools. */
export {
  findOrInstallRedis,
  findOrInstallTool,
} from "./install.ts";
export type { LocalServer as DataServer } from "./local-server.ts";
export { type PostgresServer, startPostgres } from "./postgres.ts";
export { startRedis } from "./redis.ts";
