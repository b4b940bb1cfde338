import { type RecordedRefusal, readRefusals } from "@booking-events/queue";
import type { Context } from "../context.ts";
import { withRedis } from "../services/queue.ts";

/**
 * Finds requests that ingest refused lately, the newest first.
 *
 * @param wanted.partner null: of senders without a known secret; undefined: of all
 */
export function findRefusals(
  context: Context,
  wanted: { partner: string | null | undefined; since: Date },
): Promise<RecordedRefusal[]> {
  return withRedis(context, (redis) => readRefusals({ ...redis, ...wanted }));
}
