import type { Queryable } from "../connect/queryable.ts";

/** What an operator did, without a guest's value or a secret. */
export interface OperatorAction {
  id: string;
  at: Date;
  endedAt: Date | null;
  by: string;
  /** As the command line names it, such as `partners revoke`. */
  command: string;
  arguments: Record<string, unknown>;
  /** Null: it goes on, or its end could not be recorded. */
  outcome: "done" | "refused" | "failed" | "cancelled" | null;
  /** Why it did not end as it should. */
  problem: string | null;
  /** Counts, and ids of what is new. */
  did: Record<string, unknown>;
}

export interface ActionToWrite extends Omit<OperatorAction, "at" | "endedAt" | "arguments" | "did"> {
  arguments: object;
  did: object;
}

/** Records an action that begins, or completes it. What is complete stays as it is. */
export async function writeAction(client: Queryable, action: ActionToWrite): Promise<void> {
  await client.query(
    `insert into operator_actions (id, operator, command, arguments, outcome, problem, did, ended_at)
     values ($1, $2, $3, $4, $5::text, $6, $7, case when $5::text is not null then clock_timestamp() end)
     on conflict (id) do update set outcome = excluded.outcome, problem = excluded.problem, did = excluded.did,
       ended_at = excluded.ended_at
     where operator_actions.outcome is null`,
    [
      action.id,
      action.by,
      action.command,
      JSON.stringify(action.arguments),
      action.outcome,
      action.problem,
      JSON.stringify(action.did),
    ],
  );
}

export interface ActionFilter {
  since?: Date | undefined;
  until?: Date | undefined;
  by?: string | undefined;
  limit: number;
}

/** Lists what operators did, the newest first. */
export async function listActions(
  client: Queryable,
  { since, until, by, limit }: ActionFilter,
): Promise<OperatorAction[]> {
  const { rows } = await client.query<OperatorAction>(
    `select id, began_at as at, ended_at as "endedAt", operator as by, command, arguments, outcome, problem, did
     from operator_actions
     where ($1::timestamptz is null or began_at >= $1) and ($2::timestamptz is null or began_at < $2)
       and ($3::text is null or operator = $3)
     order by began_at desc, id desc limit $4`,
    [since ?? null, until ?? null, by ?? null, limit],
  );
  return rows;
}
