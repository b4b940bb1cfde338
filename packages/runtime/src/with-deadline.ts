export class DeadlineExceeded extends Error {
  override name = "DeadlineExceeded";
}

/**
 * Waits for the work until the deadline. The work itself continues.
 *
 * After a pause of this process timers run first. setImmediate lets an answer that has already arrived be read before.
 *
 * @throws DeadlineExceeded; what the work throws
 */
export async function withDeadline<Result>(work: Promise<Result>, limitMs: number): Promise<Result> {
  const { promise: expired, reject } = Promise.withResolvers<never>();
  const giveUp = () => reject(new DeadlineExceeded(`No result within ${limitMs} ms.`));
  const timer = setTimeout(() => setImmediate(giveUp), limitMs);
  try {
    return await Promise.race([work, expired]);
  } finally {
    clearTimeout(timer);
  }
}
