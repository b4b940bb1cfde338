import { type Consumer, DelayDelivery, type GivenUpEvent, type Verdict } from "@booking-events/queue";
import { AttemptFailed, makeDeadLetter, processDelivery, type Worker } from "./process-delivery.ts";

/** BullMQ gives up an event only after many crashes, so there is rarely anything to sweep. */
export const sweepIntervalMs = 30_000;

type Queue = Pick<Consumer, "sweepFailed" | "readBytes">;

/**
 * Handles what a shard of the queue has given up: events whose workers died repeatedly, and jobs that are not events.
 * Each is applied or becomes a dead letter. Never throws; the next sweep tries again.
 */
export async function sweepGivenUp(queue: Queue, worker: Worker): Promise<void> {
  const { metrics, logger, signal } = worker;
  try {
    const count = await queue.sweepFailed({
      judge: (event) => judgeGivenUp(event, queue, worker),
      onFault(eventId, error) {
        if (signal.aborted) return false;
        metrics.countSweepFault();
        logger.error({ eventId, err: error }, "could not handle an event that the queue had given up");
        return true;
      },
    });
    if (count > 0) logger.warn({ count }, "handled events that the queue had given up");
  } catch (error) {
    if (signal.aborted) return;
    metrics.countSweepFault();
    logger.error({ err: error }, "could not look for events that the queue has given up");
  }
}

/** Something else may kill a worker while it tries an event alone, but not this often. */
const maxDeaths = 3;

/**
 * Decides about an event that BullMQ has given up by itself.
 *
 * BullMQ gives up an event whose workers died repeatedly. That says little about the event: the worker held many
 * others, and a worker also seems dead if Redis hangs. So the event is tried alone. It becomes a dead letter only if
 * workers die of that.
 *
 * @throws ReleaseDelivery if the worker stops first; LostClaim if another process has taken the event over
 */
export async function judgeGivenUp(
  { delivery, reason, deaths, runTrial }: GivenUpEvent,
  queue: Pick<Consumer, "readBytes">,
  worker: Worker,
): Promise<Verdict> {
  if (!/stalled/.test(reason) && delivery.damage === null) {
    await makeDeadLetter(delivery, { code: "GIVEN_UP", message: "The queue gave up the event." }, queue, worker);
    return "take out";
  }
  if (deaths >= maxDeaths) {
    const message = "Every worker that tried the event alone died.";
    await makeDeadLetter(delivery, { code: "STALLED", message }, queue, worker);
    return "take out";
  }
  try {
    await processDelivery(delivery, queue, worker, runTrial);
    return "take out";
  } catch (error) {
    if (error instanceof AttemptFailed || error instanceof DelayDelivery) return "put back";
    throw error;
  }
}
