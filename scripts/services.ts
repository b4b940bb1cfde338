/** The data services as real servers on this machine, for `npm start`, tests, and whatever else needs its own. */
export type { DataServer } from "./data-server.ts";
export { findFaketime, installFaketime } from "./install-faketime.ts";
export { findOrInstallRedis } from "./install-redis.ts";
export { type PostgresServer, startPostgres } from "./postgres.ts";
export { startRedis } from "./redis.ts";
