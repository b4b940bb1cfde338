/**
 * Runs works side by side. When one fails, the others are told to stop, and this rejects with the first failure after
 * all of them have ended, so that nothing goes on behind its back.
 */
export async function together<const Works extends readonly ((signal: AbortSignal) => Promise<unknown>)[]>(
  stop: AbortSignal,
  works: Works,
): Promise<{ -readonly [Index in keyof Works]: Awaited<ReturnType<Works[Index]>> }> {
  const failed = new AbortController();
  const signal = AbortSignal.any([stop, failed.signal]);
  const outcomes = await Promise.allSettled(
    works.map(async (work) => {
      try {
        return await work(signal);
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
