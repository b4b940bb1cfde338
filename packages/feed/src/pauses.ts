const firstPauseMs = 100;

/** Doubles with each failure. @param failures in a row, from 1 */
export function growingPauseMs(failures: number, longestMs: number): number {
  return Math.min(firstPauseMs * 2 ** (failures - 1), longestMs);
}
