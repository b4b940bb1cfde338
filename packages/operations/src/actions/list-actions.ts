import { type ActionFilter, listActions as list, type OperatorAction } from "@booking-events/store";
import type { Context } from "../context.ts";
import { readDatabase } from "../services/database.ts";

/** Lists what operators did, the newest first. */
export function listActions(context: Context, filter: ActionFilter): Promise<OperatorAction[]> {
  return readDatabase(context, (client) => list(client, filter));
}
