import { addUpDays, type FieldTotal, readWarningCounts } from "@booking-events/queue";
import type { Context } from "../context.ts";
import { readFile, requirePartner } from "../services/partners-file.ts";
import { withRedis } from "../services/queue.ts";

/**
 * Counts the warnings that partners' accepted events got, the most frequent first.
 *
 * @param partner undefined: all
 */
export async function countWarnings(context: Context, partner: string | undefined): Promise<FieldTotal[]> {
  const partners =
    partner === undefined ? readFile(context, (file) => file.partners) : [requirePartner(context, partner)];
  const counts = await withRedis(context, (redis) =>
    readWarningCounts({ ...redis, partners: partners.map(({ id }) => id), now: context.now() }),
  );
  return addUpDays(counts);
}
