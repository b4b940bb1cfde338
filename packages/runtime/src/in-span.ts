import type { Span } from "./tracing.ts";

/** Runs `work` and ends its span, if there is one. */
export async function inSpan<Result>(span: Span | undefined, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    span?.fail(error);
    throw error;
  } finally {
    span?.end();
  }
}
