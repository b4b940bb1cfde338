/**
 * Runs tasks concurrently. When one fails, the others are told to stop, and this rejects with the first failure after
 * all of them have ended.
 */
export async function together<const Tasks extends readonly ((signal: AbortSignal) => Promise<unknown>)[]>(
  stop: AbortSignal,
  tasks: Tasks,
): Promise<{ -readonly [Index in keyof Tasks]: Awaited<ReturnType<Tasks[Index]>> }> {
  const failed = new AbortController();
  const signal = AbortSignal.any([stop, failed.signal]);
  const outcomes = await Promise.allSettled(
    tasks.map(async (task) => {
      try {
        return await task(signal);
      } catch (error) {
        failed.abort(error);
        throw error;
      }
    }),
  );
  if (failed.signal.aborted) throw failed.signal.reason;
  // None was rejected, so all are fulfilled, and `map` kept their order.
  return outcomes.map((outcome) => (outcome as PromiseFulfilledResult<unknown>).value) as never;
}
