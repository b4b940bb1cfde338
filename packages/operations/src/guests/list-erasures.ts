import { type Erasure, listErasures as list } from "@booking-events/store";
import type { Context } from "../context.ts";
import { readDatabase } from "../services/database.ts";

/** Lists who erased guests when, and why, the newest first. */
export function listErasures(context: Context, limit: number): Promise<Erasure[]> {
  return readDatabase(context, (client) => list(client, limit));
}
