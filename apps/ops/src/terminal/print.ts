import { styleText } from "node:util";
import { toSeconds } from "@booking-events/operations";
import type { Context, Output } from "../context.ts";
import { type Column, formatTable, wrap } from "./format-table.ts";
import { printable, toJson } from "./printable.ts";

export function printLine(output: Output, line = ""): void {
  output.write(`${line}\n`);
}

export function printHeading(output: Output, text: string): void {
  printLine(output, styleText("bold", printable(text), { stream: output }));
}

export function printJson(output: Output, value: unknown): void {
  printLine(output, toJson(value));
}

export function printTable<Row>(
  output: Output,
  columns: Column<Row>[],
  rows: Row[],
  width: number = widthOf(output),
): void {
  const { header, lines } = formatTable(columns, rows, width);
  if (header !== null) printHeading(output, header);
  for (const line of lines) printLine(output, line);
}

/** Prints the first rows of those found, which may be one more than the limit, and says on stderr if there are more. */
export function printPage<Row>(
  { stdout, stderr }: Pick<Context, "stdout" | "stderr">,
  columns: Column<Row>[],
  found: Row[],
  { limit, ...options }: { limit: number; json: boolean | undefined; none: string },
): void {
  if (found.length > limit) printLine(stderr, `There are more than ${limit}. Show them with --limit.`);
  printRows(stdout, columns, found.slice(0, limit), options);
}

/** Says of how many more there is nothing to read. */
export function printOmitted(output: Output, count: number): void {
  if (count > 0) printLine(output, `… and ${count} more.`);
}

/** Prints what a command has found: as JSON, as a table, or in a sentence that says that there is nothing. */
export function printRows<Row>(
  output: Output,
  columns: Column<Row>[],
  rows: Row[],
  { json, none }: { json: boolean | undefined; none: string },
): void {
  if (json) printJson(output, rows);
  else if (rows.length === 0) printLine(output, none);
  else printTable(output, columns, rows);
}

/** Reports of one screen are as wide. */
export const screenWidth = 80;

/** Prints a text in the lines that it needs. What stands before the first one indents the others. */
export function printWrapped(output: Output, before: string, text: string): void {
  const lines = wrap(printable(text), screenWidth - before.length);
  for (const [index, line] of lines.entries())
    printLine(output, (index === 0 ? before : " ".repeat(before.length)) + line);
}

export type Field = [label: string, value: string | number | Date | null | undefined];

/** Prints a line for each field that has a value, with the values aligned. */
export function printFields(output: Output, fields: Field[]): void {
  const present = fields.filter(([, value]) => value !== null && value !== undefined && value !== "");
  const labelWidth = Math.max(...present.map(([label]) => label.length));
  for (const [label, value] of present) {
    const text = value instanceof Date ? toSeconds(value) : String(value);
    printLine(output, `  ${label.padEnd(labelWidth)}  ${printable(text)}`);
  }
}

/** Other outputs than a terminal have no width, and a terminal that does not know its width says 0. */
export function widthOf(output: Output): number {
  return (output.isTTY === true && output.columns) || Number.POSITIVE_INFINITY;
}
