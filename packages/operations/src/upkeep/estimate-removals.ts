import { estimateRemovals as estimate, type Removal } from "@booking-events/store";
import type { Context } from "../context.ts";
import { readDatabase } from "../services/database.ts";
import { readWorkerRules } from "../services/worker-rules.ts";

/** Estimates what maintenance would remove now. */
export async function estimateRemovals(context: Context): Promise<Removal[]> {
  const { retention } = await readWorkerRules(context);
  return readDatabase(context, (client) => estimate(client, retention));
}
