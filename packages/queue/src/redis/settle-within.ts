/**
 * A command in transit when its connection breaks may never settle (ioredis issue 2193), so each wait for Redis has its
 * own limit.
 */
export async function settleWithin<Result>(limitMs: number, work: Promise<Result>): Promise<Result> {
  const { promise: expired, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`No answer within ${limitMs} ms.`)), limitMs);
  try {
    return await Promise.race([work, expired]);
  } finally {
    clearTimeout(timer);
  }
}
