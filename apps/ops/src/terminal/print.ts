import { styleText } from "node:util";
import type { ReferenceKind } from "@booking-events/schema";
import type { Output } from "../context.ts";
import { type Column, formatTable } from "./format-table.ts";
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

/** Prints a line for each field that has a value, with the values aligned. */
export function printFields(output: Output, fields: [label: string, value: string | null][]): void {
  const present = fields.filter((field): field is [string, string] => field[1] !== null);
  const labelWidth = Math.max(...present.map(([label]) => label.length));
  for (const [label, value] of present) printLine(output, `  ${label.padEnd(labelWidth)}  ${printable(value)}`);
}

/** Most references are a trip's, so only a consumer's is marked. */
export function withReferenceKind(reference: string, kind: ReferenceKind | null): string {
  return kind === "consumer" ? `${reference} (the consumer's)` : reference;
}

/** Other outputs than a terminal have no width, and a terminal that does not know its width says 0. */
export function widthOf(output: Output): number {
  return (output.isTTY === true && output.columns) || Number.POSITIVE_INFINITY;
}
