import { type RecordedRefusal, readRefusals } from "@booking-events/queue";
import type { Context } from "../context.ts";
import { requireKnown } from "../services/partners-file.ts";
import { withRedis } from "../services/queue.ts";

/**
 * Finds requests that ingest refused lately, the newest first.
 *
 * @param wanted.partner null: of senders without a known secret; undefined: of all
 */
export async function findRefusals(
  context: Context,
  { until, ...wanted }: { partner: string | null | undefined; since: Date; until?: Date | undefined },
): Promise<RecordedRefusal[]> {
  const refusals = await withRedis(context, (redis) => readRefusals({ ...redis, ...wanted }));
  requireKnown(context, wanted.partner ?? undefined, refusals);
  return until === undefined ? refusals : refusals.filter(({ at }) => at < until);
}
