import { readLastUses } from "@booking-events/queue";
import type { Context } from "../context.ts";
import { knowsRedis, readRedisSettings } from "../services/queue.ts";

const recentMs = 24 * 60 * 60_000;

/**
 * Finds when a partner last used a secret within a day. If Redis can't tell, nobody has to wait: a secret that leaked
 * must be revoked all the same.
 *
 * @param secretId undefined: any of its secrets
 * @returns null: it did not, or nobody knows
 */
export async function findRecentUse(
  context: Context,
  { id, secretId }: { id: string; secretId?: string },
): Promise<Date | null> {
  if (!knowsRedis(context.environment)) return null;
  const lastUses = await readLastUses(readRedisSettings(context.environment)).catch(() => null);
  const usedAt = secretId === undefined ? lastUses?.ofPartner(id) : lastUses?.of(id, secretId);
  return usedAt && context.now().getTime() - usedAt.getTime() < recentMs ? usedAt : null;
}
