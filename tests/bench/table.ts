/** A table in Markdown that reads well in a terminal too. The first column is text, the others are numbers. */
export function formatTable(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = header.map((title, column) =>
    Math.max(3, title.length, ...rows.map((row) => row[column]?.length ?? 0)),
  );
  const formatRow = (cells: readonly string[]) =>
    `| ${widths.map((width, i) => pad(cells[i] ?? "", width, i)).join(" | ")} |`;
  const rule = widths.map((width, i) => (i === 0 ? "-".repeat(width) : `${"-".repeat(width - 1)}:`));
  return [formatRow(header), formatRow(rule), ...rows.map(formatRow)].join("\n");
}

function pad(text: string, width: number, column: number): string {
  return column === 0 ? text.padEnd(width) : text.padStart(width);
}
