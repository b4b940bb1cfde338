import { setTimeout as sleep } from "node:timers/promises";
import { createProducer, EnqueueError, type Producer } from "@booking-events/queue";
import { parseEnvelope } from "@booking-events/schema";
import { parseEnvironment, variables } from "@booking-events/service";
import { type DeadLetter, findDeadLetter, markReplayed, type Queryable } from "@booking-events/store";
import { CommandFailure } from "./command-failure.ts";
import type { Context } from "./context.ts";
import { withDatabase } from "./database.ts";

/** What became of one dead letter. */
export interface Replay {
  eventId: string;
  /**
   * `applied`: it stands in the log. `dead`: it failed again. `waiting`: it is in the queue still. `invalid`: it was not
   * replayed, since no worker could read it. `resolved`: there was nothing left to do.
   */
  result: "applied" | "dead" | "waiting" | "invalid" | "resolved";
  detail: string;
}

const waitMs = 30_000;
const pollIntervalMs = 200;

/**
 * Puts the letters' events back into the queue and waits for what becomes of them.
 *
 * @throws CommandFailure when Redis or PostgreSQL is out. What was not put back then is as before; to do all of it again
 *   is safe
 */
export async function replayDeadLetters(
  context: Context,
  letters: DeadLetter[],
  options: { by: string; isAwaited: boolean },
): Promise<Replay[]> {
  const { REDIS_URL: redisUrl, QUEUE_PREFIX: prefix } = parseEnvironment(
    { REDIS_URL: variables.REDIS_URL, QUEUE_PREFIX: variables.QUEUE_PREFIX },
    context.environment,
  );
  return withDatabase(context, async (pool) => {
    // What fails here fails the command too, which says it.
    const producer = createProducer({ redisUrl, prefix, onError: () => {} });
    try {
      await untilReady(producer);
      const replays: Replay[] = [];
      for (const { eventId } of letters) replays.push(await replayOne(pool, producer, eventId, options.by));
      return options.isAwaited ? await untilSettled(pool, replays) : replays;
    } catch (error) {
      if (error instanceof EnqueueError) throw new CommandFailure(redisIsOut, { cause: error });
      throw error;
    } finally {
      await producer.close();
    }
  });
}

const redisIsOut =
  "Redis did not take all of it. Check that it runs, then replay again: what was replayed is not applied twice.";

async function untilReady(producer: Producer): Promise<void> {
  const giveUpAtMs = Date.now() + 2_000;
  for (;;) {
    const problems = await producer.findProblems();
    if (problems.length === 0) return;
    if (Date.now() > giveUpAtMs) throw new CommandFailure(`${problems.join(" ")} Nothing was replayed.`);
    await sleep(pollIntervalMs);
  }
}

async function replayOne(client: Queryable, producer: Producer, eventId: string, by: string): Promise<Replay> {
  const letter = await findDeadLetter(client, eventId);
  const data: unknown = JSON.parse(letter?.envelope.toString() ?? "null");
  const parsed = parseEnvelope(data);
  if (letter?.resolvedAt === null && !parsed.success) return { eventId, result: "invalid", detail: parsed.problem };
  // First: the worker that applies the event must find an open letter that is marked.
  if (!(await markReplayed(client, eventId, by))) {
    return { eventId, result: "resolved", detail: letter?.resolution ?? "gone" };
  }
  await producer.requeue(eventId, data);
  return { eventId, result: "waiting", detail: "in the queue" };
}

async function untilSettled(client: Queryable, replays: Replay[]): Promise<Replay[]> {
  const giveUpAtMs = Date.now() + waitMs;
  for (;;) {
    const settled = await Promise.all(
      replays.map(async (replay) => (replay.result === "waiting" ? await look(client, replay) : replay)),
    );
    if (Date.now() > giveUpAtMs || settled.every(({ result }) => result !== "waiting")) return settled;
    await sleep(pollIntervalMs);
  }
}

async function look(client: Queryable, replay: Replay): Promise<Replay> {
  const letter = await findDeadLetter(client, replay.eventId);
  if (letter?.resolution != null) {
    // Or another operator has discarded it meanwhile.
    const result = letter.resolution.startsWith("replayed: ") ? "applied" : "resolved";
    return { ...replay, result, detail: letter.resolution };
  }
  const hasFailedAgain = letter?.replayedAt != null && letter.failedAt > letter.replayedAt;
  return hasFailedAgain ? { ...replay, result: "dead", detail: `${letter.errorCode}: ${letter.error}` } : replay;
}
