/** Returns the rows of a table of `tables`, each as its words. */
export function readTable(table: string): string[][] {
  return table
    .trim()
    .split(/,\s/)
    .map((row) => row.split(" "));
}
