import { type Erasure, listErasures as list } from "@booking-events/store";
import { type Context, inBoth } from "../context.ts";
import { readDatabase } from "../services/database.ts";

/** Lists who erased guests when, and why, the newest first. */
export async function listErasures(context: Context, limit: number): Promise<Erasure[]> {
  const erasures = await inBoth(context, (each) => readDatabase(each, (client) => list(client, limit)));
  return erasures
    .flat()
    .sort((one, other) => other.at.getTime() - one.at.getTime())
    .slice(0, limit);
}
