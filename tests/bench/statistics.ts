/** @param fraction in [0, 1]; 0.99 is the 99th percentile. Between two values, it interpolates. */
export function quantile(values: ArrayLike<number>, fraction: number): number {
  const sorted = Float64Array.from(values).sort();
  const position = fraction * (sorted.length - 1);
  const below = sorted[Math.floor(position)] ?? Number.NaN;
  const above = sorted[Math.ceil(position)] ?? Number.NaN;
  return below + (above - below) * (position - Math.floor(position));
}

export function toLatency(timesMs: number[]): { p50Ms: number; p99Ms: number } {
  return { p50Ms: quantile(timesMs, 0.5), p99Ms: quantile(timesMs, 0.99) };
}

export async function timeMs(work: () => Promise<unknown>): Promise<number> {
  const startedAtMs = performance.now();
  await work();
  return performance.now() - startedAtMs;
}
