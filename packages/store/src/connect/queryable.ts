import type pg from "pg";

/** A pool, or a client in a transaction. */
export type Queryable = Pick<pg.ClientBase, "query">;
