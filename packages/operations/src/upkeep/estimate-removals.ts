import { estimateRemovals as estimate, type Removal } from "@booking-events/store";
import type { Context } from "../context.ts";
import { readDatabase, readRetentionRules } from "../services/database.ts";

/** Estimates what maintenance would remove now. */
export function estimateRemovals(context: Context): Promise<Removal[]> {
  return readDatabase(context, (client) => estimate(client, readRetentionRules(context)));
}
