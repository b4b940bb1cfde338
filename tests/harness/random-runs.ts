const factor = Number(process.env["RANDOM_RUNS"] ?? 1);

/** How many random cases a test tries by day. Every night tries more of them: see `vitest.nightly.ts`. */
export function randomRuns(byDay: number): { numRuns: number } {
  return { numRuns: byDay * factor };
}
