export class DeadlineExceeded extends Error {
  override name = "DeadlineExceeded";
}

/**
 * Waits for the work until the deadline. The work itself continues.
 *
 * @throws DeadlineExceeded; what the work throws
 */
export async function withDeadline<Result>(work: Promise<Result>, limitMs: number): Promise<Result> {
  const { promise: expired, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new DeadlineExceeded(`No result within ${limitMs} ms.`)), limitMs);
  try {
    return await Promise.race([work, expired]);
  } finally {
    clearTimeout(timer);
  }
}
