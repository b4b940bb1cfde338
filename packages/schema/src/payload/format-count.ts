/**
 * Returns a whole number with commas between thousands. `toLocaleString` would load a language's data, which takes
 * longer than importing the rest of this package.
 */
export function formatCount(count: number): string {
  return String(count).replaceAll(/\B(?=(?:\d{3})+$)/g, ",");
}
