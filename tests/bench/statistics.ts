/** What several measurements of one thing say together: the middle one, and how far the others lie from it. */
export interface Spread {
  median: number;
  min: number;
  max: number;
}

export function spreadOf(values: readonly number[]): Spread {
  return { median: quantile(values, 0.5), min: quantile(values, 0), max: quantile(values, 1) };
}

/** Each round's own ratio: what disturbed the machine in one round disturbed both sides of it. */
export function ratiosByRound(numerators: readonly number[], denominators: readonly number[]): number[] {
  if (numerators.length !== denominators.length) throw new RangeError("Both sides need a value of each round.");
  return numerators.map((numerator, round) => numerator / (denominators[round] ?? Number.NaN));
}

/**
 * @param fraction in [0, 1]; 0.99 is the 99th percentile
 * @returns between two values, a share of both
 */
export function quantile(values: ArrayLike<number>, fraction: number): number {
  const sorted = Float64Array.from(values).sort();
  const last = sorted.length - 1;
  if (last < 0) throw new RangeError("There are no values.");
  const position = fraction * last;
  const below = sorted[Math.floor(position)] ?? 0;
  const above = sorted[Math.ceil(position)] ?? 0;
  return below + (above - below) * (position - Math.floor(position));
}
