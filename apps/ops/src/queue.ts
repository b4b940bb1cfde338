import { setTimeout as sleep } from "node:timers/promises";
import { createProducer, type Producer } from "@booking-events/queue";
import { parseEnvironment, variables } from "@booking-events/runtime";
import type { Context } from "./context.ts";
import { CommandFailure } from "./terminal/command-failure.ts";

const readyWithinMs = 2_000;
const pollIntervalMs = 200;

/**
 * Runs work that adds events to the queue, once Redis can store them safely.
 *
 * @param nothingDone the end of the message if Redis can't
 * @throws CommandFailure
 */
export async function withProducer<Result>(
  { environment }: Context,
  nothingDone: string,
  work: (producer: Producer) => Promise<Result>,
): Promise<Result> {
  const { REDIS_URL: redisUrl, QUEUE_PREFIX: prefix } = parseEnvironment(
    { REDIS_URL: variables.REDIS_URL, QUEUE_PREFIX: variables.QUEUE_PREFIX },
    environment,
  );
  // Errors fail the command, which reports them.
  const producer = createProducer({ redisUrl, prefix, onError: () => {} });
  try {
    await untilReady(producer, nothingDone);
    return await work(producer);
  } finally {
    await producer.close();
  }
}

async function untilReady(producer: Producer, nothingDone: string): Promise<void> {
  const giveUpAtMs = Date.now() + readyWithinMs;
  for (;;) {
    const problems = await producer.findProblems();
    if (problems.length === 0) return;
    if (Date.now() > giveUpAtMs) throw new CommandFailure(`${problems.join(" ")} ${nothingDone}`);
    await sleep(pollIntervalMs);
  }
}
